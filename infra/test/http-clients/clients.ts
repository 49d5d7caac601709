/** Runs the programs that send checks with the HTTP clients listed in docs/client/http-clients.md. A client that is not installed is skipped. */

import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { type Browser, chromium } from 'playwright-core'

import type { Paths } from './paths.ts'

export const CASES = ['length', 'chunked', 'expect', 'reuse', 'http10', 'gzip', 'bom', 'large', 'idle'] as const
export type Case = (typeof CASES)[number]

/** The result of one case with one client over one path. */
export interface Result {
  client: string
  path: string
  case: Case
  /** The status that the client received, or the client's description of an error. */
  received: string
}

interface Program {
  /** The clients that the program uses. */
  clients: readonly string[]
  /** The command line without the arguments; null if the program cannot run on this machine. */
  command: (folder: string) => Promise<string[] | null>
}

const LIMIT_MS = 60_000

const at = (file: string): string => fileURLToPath(new URL(`programs/${file}`, import.meta.url))
const runs = (program: string, ...args: string[]): boolean => spawnSync(program, args, { stdio: 'ignore' }).status === 0
const ifRuns = (program: string, args: string[], command: string[]) => () =>
  Promise.resolve(runs(program, ...args) ? command : null)

// The Python packages of Debian work only with Debian's Python.
const PYTHON = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'

const PROGRAMS: readonly Program[] = [
  { clients: ['curl', 'wget'], command: () => Promise.resolve([process.execPath, at('curl.mjs')]) },
  {
    clients: ['Python http.client', 'Python requests', 'Python httpx', 'Python aiohttp'],
    command: ifRuns(PYTHON, ['--version'], [PYTHON, '-B', at('clients.py')]),
  },
  {
    clients: ['Go net/http'],
    async command(folder) {
      if (!runs('go', 'version')) return null
      const program = join(folder, 'client')
      const env = { ...process.env, GOFLAGS: '-mod=mod', GOPROXY: 'off', GOTOOLCHAIN: 'local', GO111MODULE: 'off' }
      await promisify(execFile)('go', ['build', '-o', program, at('client.go')], { env })
      return [program]
    },
  },
  {
    clients: ['Java HttpClient'],
    async command(folder) {
      if (!runs('javac', '-version')) return null
      await promisify(execFile)('javac', ['-d', folder, at('Client.java')])
      return ['java', '-XX:TieredStopAtLevel=1', '-Xshare:auto', '-cp', folder, 'Client']
    },
  },
  { clients: ['PHP curl', 'PHP streams'], command: ifRuns('php', ['--version'], ['php', at('client.php')]) },
  { clients: ['Ruby Net::HTTP'], command: ifRuns('ruby', ['--version'], ['ruby', at('client.rb')]) },
  { clients: ['Perl HTTP::Tiny'], command: ifRuns('perl', ['-MHTTP::Tiny', '-e1'], ['perl', at('client.pl')]) },
  {
    clients: ['Node fetch', 'Node http', 'axios'],
    command: () => Promise.resolve([process.execPath, at('node.mjs')]),
  },
]

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
export const CLIENTS: readonly string[] = [...PROGRAMS.flatMap(({ clients }) => clients), 'Chromium fetch']

/** Compiles the programs and returns their command lines. Leaves out programs that cannot run on this machine. */
export async function preparePrograms(folder: string): Promise<string[][]> {
  const commands: string[][] = []
  for (const { command } of PROGRAMS) {
    const prepared = await command(folder)
    if (prepared !== null) commands.push(prepared)
  }
  return commands
}

/**
 * Sends every case with every client over every path, with three programs at a time. If `idleSeconds` is 0, leaves out the case `idle`.
 * Otherwise, starts one process for each program and path. The processes of one program run concurrently, because they are mostly idle.
 */
export async function runClients(paths: Paths, idleSeconds: number, commands: string[][]): Promise<Result[]> {
  const urls = [...paths.urls].map(([name, url]) => `${name}=${url}/api/v2/license/validate`)
  const groups = idleSeconds > 0 ? urls.map((url) => [url]) : [urls]
  const limitMs = LIMIT_MS + 10 * idleSeconds * 1_000
  const outputs: string[] = []
  const waiting = [...commands]
  const run = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [program = '', ...rest] = next
      const args = [...rest, paths.apiKey, paths.license, String(idleSeconds)]
      const runOnce = () => Promise.all(groups.map((group) => runProgram(program, [...args, ...group], limitMs)))
      const printed = await runOnce()
      outputs.push(...(printed.some(isOverloaded) ? await runOnce() : printed))
    }
  }
  await Promise.all([run(), run(), run()])
  outputs.push(await runChromium(paths, idleSeconds))
  return outputs
    .flatMap((output) => output.split('\n'))
    .filter((line) => line !== '')
    .map((line) => {
      const [client = '', path = '', name, received = ''] = line.split('\t')
      const found = CASES.find((one) => one === name)
      if (found === undefined) throw new Error(`A client printed ${line}`)
      return { client, path, case: found, received }
    })
}

/** Returns whether a service or a balancer was too busy to respond in time, which no case expects. */
function isOverloaded(output: string): boolean {
  return /\t50[234]$/m.test(output)
}

/** Runs a program and returns its output. Rejects with the output if the program fails or hangs. */
async function runProgram(program: string, args: string[], limitMs: number): Promise<string> {
  try {
    return (await promisify(execFile)(program, args, { timeout: limitMs, killSignal: 'SIGKILL' })).stdout
  } catch (error) {
    const printed = error instanceof Error && 'stdout' in error ? String(error.stdout) : ''
    throw new Error(`${program} ${args[0]} failed after:\n${printed}`, { cause: error })
  }
}

async function runChromium({ apiKey, license, urls }: Paths, idleSeconds: number): Promise<string> {
  if (CHROMIUM === undefined) return ''
  const browser: Browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage()
    // The page comes from the same host, because a page without an origin cannot send requests to other addresses.
    await page.route('**/page', (route) => route.fulfill({ contentType: 'text/html', body: '<p>An app.</p>' }))
    const lines: string[] = []
    for (const [path, url] of urls) {
      await page.goto(`${url}/page`)
      const sent = { url: `${url}/api/v2/license/validate`, apiKey, license, idleSeconds }
      const results = await page.evaluate(async (given) => {
        const json = JSON.stringify({ license: given.license })
        const headers = { authorization: `Bearer ${given.apiKey}`, 'content-type': 'application/json' }
        const post = async (body: string): Promise<string> => {
          try {
            return String((await fetch(given.url, { method: 'POST', headers, body })).status)
          } catch (error) {
            return `error: ${String(error)}`
          }
        }
        const list = [
          ['length', await post(json)],
          ['reuse', await post(json)],
          ['bom', await post(`\ufeff${json}`)],
          ['large', await post(json.padEnd(1_100_000))],
        ]
        if (given.idleSeconds > 0) {
          await new Promise((resolve) => setTimeout(resolve, given.idleSeconds * 1_000))
          list.push(['idle', await post(json)])
        }
        return list
      }, sent)
      lines.push(...results.map((result) => ['Chromium fetch', path, ...result].join('\t')))
    }
    return lines.join('\n')
  } finally {
    await browser.close()
  }
}
