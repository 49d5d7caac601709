import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { type DemoFile, demoFileSchema, FOLDER } from '../start/state.ts'
import { RECEIVER_SETTINGS } from './receiver.ts'

const MAIN = fileURLToPath(new URL('../start/main.ts', import.meta.url))
const PORTS = ['GATEWAY', 'VALIDATOR', 'VALIDATOR_ADMIN', 'MANAGEMENT', 'MANAGEMENT_ADMIN']

export interface Installation {
  readonly demo: DemoFile
  /** The URL that signs the demo member in once. */
  readonly signIn: string
  readonly stop: () => Promise<void>
}

/** Resolves when the installation is ready. Rejects with the standard error output if the process ends earlier. */
export async function startInstallation(): Promise<Installation> {
  const home = await mkdtemp(join(tmpdir(), 'keyward-screenshots-'))
  const child = spawn(process.execPath, [MAIN, '--demo-data'], {
    cwd: home,
    env: {
      ...process.env,
      ...RECEIVER_SETTINGS,
      ...Object.fromEntries(PORTS.map((name) => [`KEYWARD_${name}_PORT`, '0'])),
      KEYWARD_VALIDATOR_WORKERS: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
    await rm(home, { recursive: true, force: true })
  }
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const ready = new Promise<string>((resolve) => {
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      const [, link] = /(http:\S+\/console\/invitation#\S+)[^]*Stop with/.exec(output) ?? []
      if (link !== undefined) resolve(link)
    })
  })
  const signIn = await Promise.race([ready, ended.then(() => null)])
  if (signIn === null) throw new Error(`The start ended: ${errors}`)
  const demo = demoFileSchema.parse(JSON.parse(await readFile(join(home, FOLDER, 'demo.json'), 'utf8')))
  return { demo, signIn, stop }
}
