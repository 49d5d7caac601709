/**
 * nginx with LuaJIT: all data is in shared dictionaries, and a worker decides a check without leaving the process. An expert would choose
 * this design for the highest throughput on a web server. The baseline records nothing, and its data does not follow changes.
 */

import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { announce, freePort, MODULE_FOLDER, serverFolder, startCompanion } from './companion.ts'
import { writeWorld } from './world.ts'

const SCRIPTS = join(import.meta.dirname, 'nginx')
/** The space reserved per entry of a dictionary. An entry takes 128 bytes, or 256 with a longer value. */
const ENTRY_BYTES = 300
const SMALLEST_BYTES = 1 << 22

const folder = serverFolder()
const data = join(folder.path, 'world.tsv')
await writeWorld(process.env['DATABASE_URL'] ?? '', data)
const port = await freePort()
for (const script of ['address.lua', 'load.lua', 'check.lua'])
  copyFileSync(join(SCRIPTS, script), join(folder.path, script))
writeFileSync(join(folder.path, 'nginx.conf'), configuration(port, countLines(data)))
const nginx = await startCompanion(
  ['nginx', '-p', folder.path, '-c', join(folder.path, 'nginx.conf'), '-e', 'stderr'],
  { port },
)
announce(port, () => {
  nginx.stop()
  folder.remove()
})

/** Returns the number of lines by kind, which is the first character of a line. */
function countLines(path: string): Map<string, number> {
  const counts = new Map<string, number>()
  const bytes = readFileSync(path)
  for (let start = 0; start < bytes.length; start = bytes.indexOf(10, start) + 1) {
    const kind = String.fromCharCode(bytes[start]!)
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return counts
}

function configuration(listenPort: number, lines: ReadonlyMap<string, number>): string {
  const bytes = (kind: string): number => SMALLEST_BYTES + ENTRY_BYTES * (lines.get(kind) ?? 0)
  const modules = ['ndk_http_module.so', 'ngx_http_lua_module.so'].map((name) => join(MODULE_FOLDER, name))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `${modules
    .filter((path) => existsSync(path))
    .map((path) => `load_module ${path};`)
    .join('\n')}
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${folder.path}/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_max_body_size 16k;
  client_body_buffer_size 16k;
  default_type application/json;
${temporary.map((name) => `  ${name}_temp_path ${folder.path}/${name};`).join('\n')}
  lua_package_path "${folder.path}/?.lua;;";
  lua_shared_dict credentials ${bytes('C')};
  lua_shared_dict licenses ${bytes('L')};
  lua_shared_dict machines ${bytes('M')};
  lua_shared_dict rules ${bytes('R')};
  init_by_lua_block { lengths = require("load")("${data}"); check = require("check") }
  server {
    listen 127.0.0.1:${listenPort} reuseport;
    location = /api/v2/license/validate { content_by_lua_block { check(lengths) } }
  }
}
`
}
