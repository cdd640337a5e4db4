for (;;) {
  try {
    for (;;);
  } finally {
    console.log('never');
  }
}
