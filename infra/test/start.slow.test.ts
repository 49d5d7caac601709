import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { startPostgres } from '@keyward/embedded-postgres'
import { createTestDatabase } from '@keyward/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { listenOn } from '../shared/ports.ts'
import { variablesOf, untilGone } from './processes.ts'
import { runCurl, StartProcess } from './start-process.ts'

const running: StartProcess[] = []
let home: string

function start(env: Record<string, string> = {}): StartProcess {
  const started = new StartProcess(home, env)
  running.push(started)
  return started
}

async function newHome(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-start-'))
  await chmod(folder, 0o755)
  return folder
}

/** Repeats `call` for about 10 s until `isExpected` accepts the result. Returns the last result. */
async function until<T>(call: () => Promise<T>, isExpected: (result: T) => boolean): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const result = await call()
    if (isExpected(result) || attempt === 400) return result
    await sleep(25)
  }
}

async function stopAll(): Promise<void> {
  for (const one of running.splice(0)) {
    const family = one.family()
    if (one.child.exitCode === null) await one.end('SIGTERM')
    await untilGone(family)
  }
}

describe('npm start', { timeout: 60_000 }, () => {
  let started: StartProcess
  let check: () => ReturnType<typeof runCurl>

  beforeAll(async () => {
    home = await newHome()
    started = start()
    await started.ready()
    check = () => runCurl(started.curlLines()[0] ?? '')
  }, 240_000)

  afterAll(async () => {
    await stopAll()
    await rm(home, { recursive: true, force: true })
  }, 240_000)

  test('prints commands that request a verdict, add a rule that changes it, and delete the rule', async () => {
    const [, blacklist = '', remove = ''] = started.curlLines()
    expect(await check()).toMatchObject({ status: 200, body: { valid: true, code: 'VALID' } })
    const rule = await runCurl(blacklist)
    expect(rule.status).toBe(201)
    const rejected = await until(check, ({ body }) => body['code'] === 'BLACKLISTED')
    expect(rejected).toMatchObject({ status: 400, body: { valid: false, code: 'BLACKLISTED' } })

    const second = start()
    expect(await second.ended.then(() => second.child.exitCode), second.errors).toBe(0)
    expect(second.output).toMatch(/^\nKeyward already runs in this folder, at http:/)
    expect(second.output).toContain('The verdict is BLACKLISTED:')
    const [again = '', undo = ''] = second.curlLines()
    expect(again).toBe(started.curlLines()[0])
    expect(undo).toBe(remove.replace('/ID ', `/${String(rule.body['id'])} `))
    expect((await runCurl(undo)).status).toBe(204)
    expect(await until(check, ({ status }) => status === 200)).toMatchObject({ body: { code: 'VALID' } })
  })

  test('writes addresses to demo.json, which only its owner can read', async () => {
    const demo = await started.demo()
    expect(demo.databaseUrl).toMatch(/^postgres:\/\/postgres:[\w-]{32}@127\.0\.0\.1:\d+\/keyward$/)
    for (const url of [demo.baseUrl, demo.validatorUrl, demo.managementUrl])
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await stat(join(home, '.keyward'))).mode & 0o777).toBe(0o700)
    expect((await stat(join(home, '.keyward', 'demo.json'))).mode & 0o777).toBe(0o600)
  })

  test('creates an organization on the plan STANDARD with a license for 5 machines', async () => {
    const demo = await started.demo()
    const get = async (path: string, token: string): Promise<unknown> =>
      (await fetch(`${demo.baseUrl}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } })).json()
    expect(await get('/organization', demo.managementToken)).toMatchObject({
      id: demo.organizationId,
      plan: 'STANDARD',
    })
    const license = await get(`/licenses/${demo.licenseId}`, demo.managementToken)
    expect(license).toMatchObject({ key: demo.licenseKey, status: 'active', policy: { maxMachines: 5 } })
    const validator = await fetch(`${demo.validatorUrl}/api/v1/public-key`, {
      headers: { authorization: `Bearer ${demo.apiKey}` },
    })
    expect(validator.status).toBe(200)
  })

  test("uses the caller's address instead of the one in the headers", async () => {
    const { baseUrl, managementToken } = await started.demo()
    const headers = { authorization: `Bearer ${managementToken}`, 'x-forwarded-for': '203.0.113.7' }
    const response = await fetch(`${baseUrl}/api/v1/access-rules/my-ip`, { headers })
    expect(await response.json()).toMatchObject({ ip: '127.0.0.1' })
  })

  test.each(['validator', 'management', 'postgres'] as const)('restarts a %s that was killed', async (part) => {
    const before = started.member(part)
    process.kill(before.pid, 'SIGKILL')
    await untilGone([before])
    const { baseUrl, operatorToken } = await started.demo()
    const list = () =>
      fetch(`${baseUrl}/api/v1/organizations`, { headers: { authorization: `Bearer ${operatorToken}` } })
    expect((await until(list, ({ status }) => status === 200)).status).toBe(200)
    const checked = await until(check, ({ status }) => status === 200)
    expect(checked.body['code'], `${JSON.stringify(checked)} ${started.errors}`).toBe('VALID')
    expect(started.member(part).pid).not.toBe(before.pid)
  })

  test('restores the installation after npm start was killed', async () => {
    const demo = await started.demo()
    const orphans = started.family()
    await started.end('SIGKILL')
    await rm(join(home, '.keyward', 'demo.json'))
    started = start()
    await started.ready()
    await untilGone(orphans)
    const again = await started.demo()
    expect({ ...again, ...addressesOf(demo) }).toEqual(demo)
    expect((await check()).body['code']).toBe('VALID')
  })

  test('leaves no process running after SIGTERM', async () => {
    const family = started.family()
    expect(family.length).toBeGreaterThan(4)
    expect(await started.end('SIGTERM')).toBe(0)
    await untilGone(family, 2_000)
  })

  test('stops when its npm process is killed', async () => {
    const npm = new StartProcess(home, { npm_lifecycle_event: 'start' }, [
      '-e',
      `require('node:child_process').spawn(process.execPath, [process.argv[1]], { stdio: 'inherit' })`,
    ])
    running.push(npm)
    await npm.ready()
    const family = npm.family()
    expect(family.length).toBeGreaterThan(5)
    process.kill(npm.child.pid ?? 0, 'SIGKILL')
    await untilGone(family, 10_000)
  })

  test('prints the error of a service once and leaves no process running', async () => {
    started = start({ KEYWARD_EDGE: 'nowhere' })
    await started.ended
    expect(started.child.exitCode).toBe(1)
    expect(started.errors).toMatch(/^Starting …\nKEYWARD_EDGE must be one of [\w, ]+; got "nowhere"\n$/)
    expect(await readdir(join(home, '.keyward', 'postgres'))).not.toContain('postmaster.pid')
  })
})

function addressesOf(demo: object): object {
  const addresses = new Set(['baseUrl', 'validatorUrl', 'managementUrl', 'databaseUrl'])
  return Object.fromEntries(Object.entries(demo).filter(([name]) => addresses.has(name)))
}

test(
  'starts no Postgres with KEYWARD_DATABASE_URL and passes secrets only to management',
  { timeout: 60_000 },
  async () => {
    home = await newHome()
    const database = await createTestDatabase()
    const given = { KEYWARD_DATABASE_URL: database.url, KEYWARD_VALIDATOR_DATABASE_URL: database.validatorUrl }
    const secrets = {
      KEYWARD_OPERATOR_TOKEN: 'a-token-of-the-operator-and-nobody-else',
      KEYWARD_MASTER_KEY: '5e'.repeat(32),
    }
    const started = start({ ...given, ...secrets, KEYWARD_MASTER_KEY_PREVIOUS: 'a7'.repeat(32), INDEX_FILE: '' })
    await started.ready()
    expect(await runCurl(started.curlLines()[0] ?? '')).toMatchObject({ status: 200, body: { code: 'VALID' } })
    expect((await started.demo()).databaseUrl).toBe(database.url)
    expect(started.family().filter(({ command }) => command.includes('postgres'))).toEqual([])
    const management = variablesOf(started.member('management'))
    const validator = variablesOf(started.member('validator'))
    const names = [...Object.keys(secrets), 'KEYWARD_MASTER_KEY_PREVIOUS', 'KEYWARD_DATABASE_URL']
    expect(names.filter((name) => management?.has(name) === false)).toEqual([])
    expect(names.filter((name) => validator?.has(name))).toEqual([])
    expect(validator?.has('KEYWARD_INDEX_FILE')).toBe(false)
    await stopAll()
    await database.drop()
    await rm(home, { recursive: true, force: true })
  },
)

describe('a failing npm start', { timeout: 60_000 }, () => {
  afterEach(async () => {
    await stopAll()
    await rm(home, { recursive: true, force: true })
  }, 240_000)

  test('prints an error that names an invalid variable', async () => {
    home = await newHome()
    const started = start({ KEYWARD_GATEWAY_PORT: 'eighty' })
    await started.ended
    expect([started.child.exitCode, started.output]).toEqual([1, ''])
    expect(started.errors).toBe('KEYWARD_GATEWAY_PORT must be a port from 0 to 65535; got "eighty"\n')
  })

  test('prints an error that names a taken port and its variable', async () => {
    home = await newHome()
    const server = createServer()
    const port = await listenOn(server, 0)
    const started = start({ KEYWARD_MANAGEMENT_PORT: String(port) })
    await started.ended
    server.close()
    expect(started.child.exitCode).toBe(1)
    expect(started.errors).toBe(
      `Starting …\nPort ${port} is taken by another program; set KEYWARD_MANAGEMENT_PORT to a free port\n`,
    )
  })

  test('prints advice for data of another version of Postgres', async () => {
    home = await newHome()
    const dataFolder = join(home, '.keyward', 'postgres')
    await (await startPostgres({ dataFolder })).stop()
    await writeFile(join(dataFolder, 'PG_VERSION'), '14\n')
    const started = start()
    await started.ended
    expect([started.child.exitCode, started.output]).toEqual([1, ''])
    expect(started.errors).toMatch(/by PostgreSQL version 14, .* Remove the folder \.keyward to start over, or .*\n$/)
  })

  test('prints an error for a damaged state file and does not change the file', async () => {
    home = await newHome()
    await mkdir(join(home, '.keyward'))
    const path = join(home, '.keyward', 'state.json')
    await writeFile(path, '{"operatorToken":"half')
    const started = start()
    await started.ended
    expect([started.child.exitCode, started.output]).toEqual([1, ''])
    expect(started.errors).toMatch(/state\.json is damaged.*\n$/)
    expect(await readFile(path, 'utf8')).toBe('{"operatorToken":"half')
  })
})
