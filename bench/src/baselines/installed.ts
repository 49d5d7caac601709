import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { isInstalled } from './companion.ts'

/** The folder of nginx's modules on Debian. */
export const MODULE_FOLDER = '/usr/lib/nginx/modules'
/** The paths at which Debian installs the Lua module `cjson`, on x86-64 and arm64. */
const LUA_JSON = ['/usr/lib/x86_64-linux-gnu/lua/5.1/cjson.so', '/usr/lib/aarch64-linux-gnu/lua/5.1/cjson.so']

export type BaselineName = 'ceiling' | 'fastify-sql' | 'nginx-lua' | 'fastify-redis' | 'express-postgres'

/** Returns the command that installs the missing packages of a baseline on Debian, or null if the baseline can run. */
export function missingPackages(name: BaselineName): string | null {
  if (name === 'nginx-lua') {
    const found =
      isInstalled('nginx') &&
      existsSync(join(MODULE_FOLDER, 'ngx_http_lua_module.so')) &&
      LUA_JSON.some((path) => existsSync(path))
    return found ? null : 'apt-get install nginx-light libnginx-mod-http-lua lua-cjson'
  }
  if (name === 'fastify-redis') return isInstalled('redis-server') ? null : 'apt-get install redis-server'
  return null
}
