/**
 * Runs the receivers that docs/webhooks.md prints or names, and delivers an event of every type to each. The examples in the schemas
 * of the types are the data of the events. A receiver without an installed toolchain is skipped.
 */

import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { EVENT_TYPES, eventTypes } from '@keyward/contract/management/events'
import { createdWebhookEndpoint } from '@keyward/contract/management/webhooks'
import { uuidv7 } from '@keyward/database'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { signatureHeaders } from '../../src/outbound/signature.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { LOCAL_WEBHOOKS } from '../support/receiver.ts'
import { createVendor, expectBody, type Vendor } from '../support/vendor.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const CLIENTS = join(ROOT, 'packages/client/other-languages')
const folder = mkdtempSync(join(tmpdir(), 'keyward-receivers-'))
const stops: (() => Promise<void>)[] = []

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness(LOCAL_WEBHOOKS)
  vendor = await createVendor(harness)
  for (const type of EVENT_TYPES.filter((one) => one !== 'ping'))
    await harness.database.pool.query('insert into events (id, organization_id, type, data) values ($1, $2, $3, $4)', [
      uuidv7(),
      vendor.id,
      type,
      exampleOf(eventTypes[type].data),
    ])
})
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()))
  await harness.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Returns the example of a schema, or an object with the examples of its members. */
function exampleOf(schema: z.core.$ZodType): unknown {
  const meta = z.globalRegistry.get(schema)
  if (meta && 'example' in meta && meta['example'] !== undefined) return meta['example']
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return exampleOf(schema.unwrap())
  if (schema instanceof z.ZodArray) return [exampleOf(schema.element)]
  if (!(schema instanceof z.ZodObject)) return undefined
  return Object.fromEntries(Object.entries(schema.shape).map(([name, member]) => [name, exampleOf(member)]))
}

/** Writes the first example in JavaScript in docs/webhooks.md to a file, and returns the path. */
function writeExample(): string {
  const code = /```js\n(.*?)```/s.exec(readFileSync(join(ROOT, 'docs/webhooks.md'), 'utf8'))?.[1]
  if (code === undefined) throw new Error('docs/webhooks.md contains no example in JavaScript')
  const path = join(folder, 'receiver.mjs')
  writeFileSync(path, code)
  return path
}

const succeeds = (command: string, args: readonly string[]) => spawnSync(command, args).status === 0

/** The receivers, and the commands that start them. */
const receivers = [
  {
    language: 'JavaScript, with the official library',
    missing: null,
    command: () => {
      // This link replaces the installation of standardwebhooks in the folder.
      const library = realpathSync(join(import.meta.dirname, '../../node_modules/standardwebhooks'))
      mkdirSync(join(folder, 'node_modules'), { recursive: true })
      symlinkSync(library, join(folder, 'node_modules/standardwebhooks'))
      return [process.execPath, writeExample()]
    },
  },
  {
    language: 'Python',
    missing: succeeds('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']) ? null : 'no Python 3.9',
    command: () => ['python3', '-B', join(CLIENTS, 'python/receiver.py')],
  },
  {
    language: 'Go',
    missing: succeeds('go', ['version']) ? null : 'no go',
    command: () => {
      const program = join(folder, 'receiver-go')
      const env = {
        ...process.env,
        GOFLAGS: '-buildvcs=false',
        GOPROXY: 'off',
        GOTOOLCHAIN: 'local',
      }
      const build = spawnSync('go', ['build', '-o', program, './receiver'], {
        cwd: join(CLIENTS, 'go'),
        env,
        encoding: 'utf8',
      })
      expect(build.stderr).toBe('')
      return [program]
    },
  },
]

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}

/** Starts a receiver with the secret. Returns the lines that it prints. */
function start([program = '', ...args]: string[], env: Record<string, string>): string[] {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(line))
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  stops.push(() => {
    child.kill('SIGKILL')
    return exit
  })
  return lines
}

describe.each(receivers)('the receiver in $language', ({ missing, command }) => {
  test.skipIf(missing !== null)(`accepts events of every type (${missing ?? 'runs here'})`, async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/hook`
    const types = ['*', 'license.blacklisted']
    const created = await vendor.call('POST', 'webhook-endpoints', { body: { url, types } })
    const { id, secret = '' } = expectBody(created, 201, createdWebhookEndpoint)
    const lines = start(command(), { WEBHOOK_SECRET: secret, PORT: String(port) })
    const post = async (body: string, headers: Record<string, string>) =>
      (await fetch(url, { method: 'POST', body, headers })).status
    await expect.poll(() => post('{}', {}).catch(() => null), { timeout: 20_000 }).toBe(400)

    const from = new Date(Date.now() - 600_000).toISOString()
    expect((await vendor.call('POST', `webhook-endpoints/${id}/replay`, { body: { from, types } })).status).toBe(200)
    expect((await vendor.call('POST', `webhook-endpoints/${id}/test`)).status).toBe(201)
    const received = () => new Set(lines.map((line) => line.split(' ')[0]))
    await expect.poll(() => EVENT_TYPES.filter((type) => !received().has(type)), { timeout: 20_000 }).toEqual([])

    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const body = JSON.stringify({ id: uuidv7(), type: 'sent.here', data: {} })
    const other = Buffer.alloc(32)
    const signed = (keys: Buffer[], aheadSeconds = 0) =>
      signatureHeaders(keys, 'message', body, Date.now() + aheadSeconds * 1_000)
    const before = lines.length
    expect(await post(`${body} `, signed([key]))).toBe(400)
    expect(await post(body, signed([key], -400))).toBe(400)
    expect(await post(body, signed([key], 400))).toBe(400)
    expect(await post(body, signed([other]))).toBe(400)
    expect(await post(body, { ...signed([key]), 'webhook-timestamp': 'soon' })).toBe(400)
    expect(lines).toHaveLength(before)
    // The event is sent twice, first with two signatures, as after a rotation of the secret. The receiver prints it once.
    for (const keys of [[other, key], [key]]) expect(await post(body, signed(keys))).toBe(204)
    await expect.poll(() => lines.slice(before).map((line) => line.trim())).toEqual(['sent.here'])
  })
})
