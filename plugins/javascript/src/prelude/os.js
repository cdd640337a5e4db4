'use strict';

module.exports = {
  EOL: '\n',
  platform: () => 'linux',
  type: () => 'Linux',
  arch: () => 'wasm32',
  release: () => '',
  hostname: () => 'localhost',
  homedir: () => '/',
  tmpdir: () => '/tmp',
  endianness: () => 'LE',
  cpus: () => [],
  totalmem: () => 0,
  freemem: () => 0,
  uptime: () => native.now() / 1000,
  userInfo: () => ({ uid: 0, gid: 0, username: 'root', homedir: '/', shell: null }),
};
