/**
 * Runs the commands of guides unchanged in a shell against a running installation, and compares their output with
 * the output in the guides. Each guide has a separate organization.
 */

import { execFile, execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { ensureDemo } from '../shared/demo.ts'
import { listenOn } from '../shared/ports.ts'
import { StartProcess } from './start-process.ts'

const run = promisify(execFile)
const OPERATOR_TOKEN = 'operator-token-of-these-tests-only'
const CLI = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const GUIDES = ['block-a-network', 'floating-licenses', 'keep-a-list-in-step', 'only-our-office', 'trial']

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
const isHere = isInstalled('bash') && isInstalled('curl')

let database: TestDatabase
let folder: string
let started: StartProcess
let baseUrl: string
/**
 * A server to which the shell sends a request in place of each `sleep` of a guide. On each request, the server ages the leases of machines
 * that send no checks.
 */
let clock: Server
let clockUrl: string

beforeAll(async () => {
  if (!isHere) return
  folder = await mkdtemp(join(tmpdir(), 'keyward-guides-'))
  database = await createTestDatabase()
  started = new StartProcess(folder, {
    KEYWARD_DATABASE_URL: database.url,
    KEYWARD_OPERATOR_TOKEN: OPERATOR_TOKEN,
  })
  await started.ready()
  baseUrl = (await started.demo()).baseUrl
  clock = createServer((request, response) => {
    const seconds = Number(request.url?.slice(1))
    const older = `update machines set lease_ends_at = lease_ends_at - make_interval(secs => $1) where machine_id <> 'desk-1'`
    void database.pool.query(older, [seconds]).then(() => response.end())
  })
  clockUrl = `http://127.0.0.1:${await listenOn(clock, 0)}`
})
afterAll(async () => {
  if (!isHere) return
  clock.close()
  await started.end('SIGTERM')
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

interface Step {
  commands: string
  /** The output in the guide; undefined if the guide shows none. */
  shown: string | undefined
}

function stepsOf(guide: string): Step[] {
  const blocks = [...guide.matchAll(/^```(sh)?\n([^]*?)^```$/gm)].map(([, language, text = '']) => ({
    isShell: language === 'sh',
    text,
  }))
  return blocks.flatMap(({ isShell, text }, i) => {
    const next = blocks[i + 1]
    return isShell ? [{ commands: text, shown: next?.isShell === false ? next.text : undefined }] : []
  })
}

/** Returns a pattern for the output in a guide. It matches any time, because times differ between runs, and `…` matches any text. */
function patternOf(shown: string): RegExp {
  const exact = shown.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  const pattern = exact
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+\\\.\d{3}Z/g, String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`)
    .replaceAll(/(?:\b[0-9a-f]{4})?…/g, '[^]*?')
  return new RegExp(`^${pattern}$`)
}

const PRELUDE = String.raw`
set -u
npm() { shift 4; "$NODE" "$CLI" "$@"; }
sleep() { curl -sf "$CLOCK/$1"; }
`

test.skipIf(!isHere).concurrent.each(GUIDES)(
  'the commands of %s print what the guide shows (needs bash and curl)',
  { timeout: 150_000 },
  async (name) => {
    const guide = await readFile(new URL(`../../docs/guides/${name}.md`, import.meta.url), 'utf8')
    const home = join(folder, name)
    await mkdir(join(home, '.keyward'), { recursive: true })
    const { demo } = await ensureDemo({ url: baseUrl, operatorToken: OPERATOR_TOKEN }, undefined, async () => undefined)
    const file = { ...(await started.demo()), ...demo }
    await writeFile(join(home, '.keyward', 'demo.json'), JSON.stringify(file), { mode: 0o600 })
    const steps = stepsOf(guide)
    expect(steps.length).toBeGreaterThan(3)
    const script = steps.map(({ commands }) => `${commands}\necho '=== end of step'`).join('\n')
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      HOME: home,
      NODE: process.execPath,
      CLI,
      CLOCK: clockUrl,
    }
    const text = PRELUDE + script.replaceAll('http://127.0.0.1:8000', baseUrl)
    const { stdout, stderr } = await run('bash', ['-c', text], { cwd: home, env })
    const printed = stdout.split('=== end of step\n').map((part) => part.trim().replaceAll('\r', ''))
    for (const [i, { commands, shown = '…' }] of steps.entries())
      expect(printed[i], `${commands}\n${stderr}`).toMatch(patternOf(shown))
  },
)
