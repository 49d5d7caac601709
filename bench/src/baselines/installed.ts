/** Finds out which baselines this machine can run. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'

import { isInstalled } from './companion.ts'

/** The folder of nginx's modules on Debian. */
export const MODULE_FOLDER = '/usr/lib/nginx/modules'
/** The modules of Lua that the baseline loads, and the folders in which Debian installs them. */
const LUA_JSON = ['/usr/lib/x86_64-linux-gnu/lua/5.1/cjson.so', '/usr/lib/aarch64-linux-gnu/lua/5.1/cjson.so']

export type BaselineName = 'ceiling' | 'fastify-sql' | 'nginx-lua' | 'fastify-redis' | 'express-postgres'

/** Returns the command that installs what a baseline lacks on Debian, or null when it can run. */
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
