console.log('never');
break;
