/** Runs the Node programs in docs/guides/gateways.md, with many requests at the same time. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { createWorld, until, type World } from '../harness.ts'

const guide = readFileSync(new URL('../../../../docs/guides/gateways.md', import.meta.url), 'utf8')
const examples = [...guide.matchAll(/^```js\n([^]*?)^```/gm)].map(([, code = '']) => code)
const folder = mkdtempSync(join(tmpdir(), 'keyward-embedded-'))
const children: ChildProcess[] = []
let world: World

beforeAll(async () => {
  world = await createWorld()
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await world.database.drop()
  rmSync(folder, { recursive: true })
})

test.each(['express', 'fastify'])(
  'the example with %s lets only requests with a valid license through',
  async (name) => {
    const example = examples.find((code) => code.includes(`from '${name}'`)) ?? ''
    const code = example
      .replace(`'${name}'`, `'${import.meta.resolve(name)}'`)
      .replace(`'keyward/embedded'`, `'${new URL('../../src/embedded/embedded.ts', import.meta.url).href}'`)
      .replace(/Number\(process\.env\.PORT\)|process\.env\.PORT/, '0')
    const address = `(${name === 'express' ? 'server' : 'app.server'}).address()`
    const announced = `setInterval(() => { if (${address}) console.log('port ' + ${address}.port) }, 20).unref()`
    const path = join(folder, `${name}.mjs`)
    writeFileSync(path, `${code}\n${announced}`)
    const child = spawn(process.execPath, [path], {
      env: {
        ...process.env,
        API_KEY: world.secret,
        VALIDATOR_DATABASE_URL: world.database.validatorUrl,
        VALIDATOR_ADMIN_PORT: '0',
        LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    let output = ''
    child.stdout.on('data', (data: Buffer) => (output += data.toString()))
    await until(() => /^port \d+$/m.test(output) || child.exitCode !== null)
    const port = /^port (\d+)$/m.exec(output)?.[1]
    const { key } = await world.license({ maxMachines: 2 })
    const ask = async (headers: Record<string, string>): Promise<string> => {
      for (;;) {
        const response = await fetch(`http://127.0.0.1:${port}/`, { headers })
        const text = await response.text()
        // Postgres may respond late on a busy machine.
        if (response.status !== 503) return `${response.status} ${text}`
      }
    }
    const licensed = (machine: string) => ({ 'x-keyward-license': key, 'x-keyward-machine': machine })
    await until(async () => (await ask(licensed('first'))) === '200 Hello')
    const answers = await Promise.all(Array.from({ length: 400 }, (_, i) => ask(licensed(`machine ${i % 8}`))))
    const countOf = (wanted: string): number => answers.filter((answer) => answer === wanted).length
    expect([countOf('200 Hello'), countOf('403 {"code":"TOO_MANY_MACHINES"}')]).toEqual([50, 350])
    expect(await ask({})).toBe('422 {"code":"INVALID_REQUEST"}')
    expect(await ask({ 'x-keyward-license': 'unknown' })).toBe('403 {"code":"NOT_FOUND"}')
    expect(await ask(licensed('m'.repeat(513)))).toBe('422 {"code":"INVALID_REQUEST"}')
    child.kill('SIGTERM')
    await until(() => child.exitCode !== null)
    const { rows } = await world.database.pool.query('select sum(count)::int as count from activity')
    expect(rows).not.toEqual([{ count: null }])
  },
)
