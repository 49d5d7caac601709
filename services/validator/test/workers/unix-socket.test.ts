/** Tests the listener for a balancer on the same host. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { configFor, createWorld, send, startValidator, until, type World } from '../harness.ts'

const PATH = '/api/v2/license/validate'
let world: World
let folder: string
let key: string
let nextPath = 0

beforeAll(async () => {
  world = await createWorld()
  folder = mkdtempSync(join(tmpdir(), 'keyward-socket-'))
  const license = await world.license({ maxMachines: null })
  key = license.key
  const rule = {
    organizationId: world.organizationId,
    licenseId: license.id,
    type: 'IP' as const,
    value: '192.0.2.0/24',
  }
  await insertRule(world.database.pool, rule)
})
afterAll(async () => {
  await world.database.drop()
  rmSync(folder, { recursive: true, force: true })
})

const newPath = (): string => join(folder, `${nextPath++}.sock`)
/** Starts a validator that trusts no address. */
async function start(socketPath: string, workers = 1) {
  const resolver = { trustedProxies: [], hasUnixSocket: true }
  const validator = await startValidator(configFor(world.database.url, { socketPath, workers, resolver }), 'small')
  await validator.loaded
  return validator
}
/** Sends a check over the socket. Returns the body of the response. */
async function check(socketPath: string, headers: Record<string, string> = {}): Promise<string> {
  const headersToSend = { authorization: `Bearer ${world.secret}`, ...headers }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({ socketPath, path: PATH, method: 'POST', headers: headersToSend }, resolve)
    sent.on('error', reject).end(JSON.stringify({ license: key, fingerprint: 'm1' }))
  })
  return text(response)
}

test('serves checks on the socket and on the port, and trusts only the peers of the socket', async () => {
  const path = newPath()
  const validator = await start(path, 2)
  expect(statSync(path).mode & 0o777).toBe(0o660)
  const blocked = { 'x-forwarded-for': '192.0.2.7' }
  await until(async () => (await check(path, blocked)).includes('BLACKLISTED'))
  for (let n = 0; n < 8; n++) {
    expect(await check(path, { 'x-forwarded-for': '198.51.100.1' })).toContain('"VALID"')
    expect(await check(path)).toContain('"VALID"')
    const overTcp = await send(validator.port, PATH, { body: { license: key }, secret: world.secret, headers: blocked })
    expect(overTcp.text).toContain('"VALID"')
  }
  await validator.close()
  expect(existsSync(path)).toBe(false)
})

test('does not take the socket of a running validator', async () => {
  const path = newPath()
  const first = await start(path)
  await expect(start(path)).rejects.toThrow(`Another program listens on ${path}.`)
  expect(await check(path)).toContain('"VALID"')
  await first.close()
})

test('replaces the socket of a killed program, but no other file', async () => {
  const path = newPath()
  const program = 'require("net").createServer().listen(process.argv[1], () => console.log("listening"))'
  const killed = spawn(process.execPath, ['-e', program, path])
  await once(killed.stdout, 'data')
  killed.kill('SIGKILL')
  await once(killed, 'exit')
  expect(statSync(path).isSocket()).toBe(true)
  const validator = await start(path)
  expect(await check(path)).toContain('"VALID"')
  await validator.close()
  writeFileSync(path, 'notes')
  await expect(start(path)).rejects.toThrow(`${path} exists and is not a socket.`)
  expect(readFileSync(path, 'utf8')).toBe('notes')
})
