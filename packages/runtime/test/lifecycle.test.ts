import { fork, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { text as readAll } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { ConfigError, effectiveVariables, explainStart, host, integer, port } from '../src/index.ts'

const stoppable = fileURLToPath(new URL('programs/stoppable.ts', import.meta.url))
const starter = fileURLToPath(new URL('programs/starter.ts', import.meta.url))
const started: ChildProcess[] = []

afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

/** Starts `stoppable.ts`, calls `act` once it is ready, and returns its exit code and output. */
async function run(mode: string, act: (child: ChildProcess) => void) {
  const child = spawn(process.execPath, [stoppable, mode], { stdio: ['ignore', 'pipe', 'pipe'] })
  started.push(child)
  const output = readAll(child.stdout)
  const errors = readAll(child.stderr)
  await once(child.stdout, 'data')
  act(child)
  await once(child, 'exit')
  return { code: child.exitCode, output: await output, errors: await errors }
}

test.each(['SIGTERM', 'SIGINT'] as const)('stops once and exits with 0 when %s arrives repeatedly', async (signal) => {
  const { code, output } = await run('waits', (child) => {
    child.kill(signal)
    setTimeout(() => child.kill('SIGTERM'), 30)
    setTimeout(() => child.kill('SIGINT'), 60)
  })
  expect(code).toBe(0)
  expect(output.match(/stopping/g)).toHaveLength(1)
  expect(output).toContain('stopped')
})

test('exits with 1 when the stop hangs', async () => {
  const { code, errors } = await run('hangs', (child) => child.kill('SIGTERM'))
  expect(code).toBe(1)
  expect(errors).toContain('longer than 200 ms')
})

test('prints the error and exits with 1 when the stop fails', async () => {
  const { code, errors } = await run('fails', (child) => child.kill('SIGTERM'))
  expect(code).toBe(1)
  expect(errors).toBe('The stop failed: the disk is gone\n')
})

test('exits with the code that the program passes when it begins the stop itself', async () => {
  const { code, output } = await run('itself', () => {})
  expect(code).toBe(7)
  expect(output).toContain('stopped')
})

test('sends the ports of the process to its parent', async () => {
  const direct = fork(stoppable, ['waits'], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  started.push(direct)
  expect((await once(direct, 'message'))[0]).toEqual({ type: 'listening', port: 1, adminPort: 2 })
})

test.each([
  ['waits', 'ready'],
  ['late', 'forked'],
])('stops a child when its parent is killed, in the mode %s', async (mode, sign) => {
  const parent = spawn(process.execPath, [starter, mode], { stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(parent)
  const output = readAll(parent.stdout)
  await new Promise<void>((resolve) => {
    parent.stdout.on('data', (chunk: Buffer) => (chunk.toString().includes(sign) ? resolve() : undefined))
  })
  parent.kill('SIGKILL')
  // The child has the pipe open too, so the output ends when the child has exited.
  expect(await output).toContain('stopped')
})

describe('a program that cannot listen', () => {
  const variables = z.object({
    VALIDATOR_HOST: host().default('127.0.0.1'),
    VALIDATOR_PORT: port().default(8080),
    WORKERS: integer(1, 9),
  })

  /** Returns the explanation of a failed attempt to listen at `at`. */
  async function explain(env: Record<string, string>, at: { host: string; port: number }): Promise<string> {
    const given = effectiveVariables(variables, { WORKERS: '1', ...env })
    const server = createServer()
    return explainStart(await new Promise<Error>((resolve) => server.once('error', resolve).listen(at)), given)
  }

  test('names the variable of the port that is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const taken = typeof address === 'object' && address ? address.port : 0
    const at = { host: '127.0.0.1', port: taken }
    expect(await explain({ VALIDATOR_PORT: String(taken) }, at)).toBe(
      `Port ${taken} is taken by another program; set VALIDATOR_PORT to a free port.`,
    )
    expect(await explain({}, at)).toBe(`Port ${taken} is taken by another program; choose a free port.`)
    server.close()
  })

  test('names the variable whose address is not one of this machine', async () => {
    expect(await explain({ VALIDATOR_HOST: '192.0.2.1' }, { host: '192.0.2.1', port: 0 })).toBe(
      'This machine has no address 192.0.2.1; set VALIDATOR_HOST to an address of this machine.',
    )
  })

  test('names the variable whose default is the port that is taken', () => {
    const given = effectiveVariables(variables, { WORKERS: '1', VALIDATOR_PORT: '' })
    const taken = Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE', port: 8080 })
    expect(explainStart(taken, given)).toBe(
      'Port 8080 is taken by another program; set KEYWARD_VALIDATOR_PORT to a free port.',
    )
  })
})

test('logs a failed start of a service as JSON, and prints that of another program', () => {
  const lifecycle = JSON.stringify(new URL('../src/index.ts', import.meta.url).href)
  const fail = (service: string) => {
    const call = `failStart(new ConfigError('A must be 1\\nB must be 2'), {}${service})`
    const program = `import { ConfigError, failStart } from ${lifecycle}; ${call}`
    return spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' })
  }
  const logged = fail(", 'validator'")
  expect([logged.status, logged.stderr]).toEqual([1, ''])
  expect(JSON.parse(logged.stdout)).toMatchObject({
    level: 'fatal',
    program: 'validator',
    reasons: ['A must be 1', 'B must be 2'],
    msg: 'start failed',
  })
  expect(fail('')).toMatchObject({ status: 1, stdout: '', stderr: 'A must be 1\nB must be 2\n' })
})

test('logs the old names that are set in one line, without values, and prints a line for each in other programs', () => {
  const runtime = JSON.stringify(new URL('../src/index.ts', import.meta.url).href)
  const env = { MASTER_KEY: 'secret', KEYWARD_EDGE: 'fastly', EDGE: 'fastly', PATH: process.env['PATH'] }
  const report = (service: string) => {
    const call = `reportOldNames(z.object({ MASTER_KEY: text(), EDGE: text() })${service})`
    const program = `import { reportOldNames, text } from ${runtime}; import { z } from 'zod'; ${call}`
    const options = { encoding: 'utf8', env, cwd: import.meta.dirname } as const
    return spawnSync(process.execPath, ['--input-type=module', '--eval', program], options)
  }
  const { stdout, stderr } = report(", 'validator'")
  expect(JSON.parse(stdout)).toMatchObject({
    level: 'warn',
    variables: { MASTER_KEY: 'KEYWARD_MASTER_KEY' },
    msg: 'variables have old names',
  })
  expect(stdout + stderr).not.toContain('secret')
  expect(report('')).toMatchObject({ stdout: '', stderr: 'MASTER_KEY is the old name of KEYWARD_MASTER_KEY.\n' })
})

test('explains a failed start in one sentence', () => {
  expect(explainStart(new ConfigError('X must be z; got "y"'))).toBe('X must be z; got "y"')
  expect(explainStart(new Error('disk is full'))).toBe('The start failed: disk is full')
  const refused = new AggregateError([new Error('connect ECONNREFUSED ::1:5432')])
  expect(explainStart(Object.assign(refused, { code: 'ECONNREFUSED' }))).toBe(
    'The start failed: connect ECONNREFUSED ::1:5432',
  )
  expect(explainStart(Object.assign(new Error('no such role'), { code: '28000' }))).toBe(
    'The start failed: no such role (28000)',
  )
  expect(explainStart(new TypeError('unforeseen'))).toContain('lifecycle.test.ts')
})
