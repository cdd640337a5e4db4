function read(config) {
  return config.database.port;
}
read({});
