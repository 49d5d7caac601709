import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { accountToUse, findBinaries } from '../src/binaries.ts'
import { pathFromInside } from '../src/data-folder.ts'
import { startPostgres } from '../src/index.ts'

let folder: string

// Other users have no access to this folder. A Postgres that root starts runs as another user.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-postgres-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

/** Starts another program that runs Postgres on the folder until the program is killed. */
async function startElsewhere(dataFolder: string): Promise<{ starter: ChildProcess; pid: number; port: number }> {
  const program = `
    import { startPostgres } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)}
    const { pid, port } = await startPostgres({ dataFolder: ${JSON.stringify(dataFolder)} })
    console.log(pid + ' ' + port)
    setInterval(() => {}, 1000)`
  const starter = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const line: unknown[] = await once(createInterface(starter.stdout), 'line')
  const [pid, port] = String(line[0]).split(' ').map(Number)
  return { starter, pid: pid ?? 0, port: port ?? 0 }
}

describe('startPostgres', () => {
  test('starts on a new folder, stops, and starts again on the same data', async () => {
    const dataFolder = join(folder, 'again')
    const first = await startPostgres({ dataFolder })
    expect(await isListening(first.port)).toBe(true)
    expect(first.port).toBeLessThan(32_768)
    const version = await readFile(join(dataFolder, 'PG_VERSION'), 'utf8')
    await first.stop()
    expect(await isListening(first.port)).toBe(false)
    const second = await startPostgres({ dataFolder, port: first.port })
    expect(second.port).toBe(first.port)
    expect(await readFile(join(dataFolder, 'PG_VERSION'), 'utf8')).toBe(version)
    await second.stop()
    await second.ended
  })

  test('rejects a second server on a data folder that is in use', async () => {
    const dataFolder = join(folder, 'used')
    const first = await startPostgres({ dataFolder })
    await expect(startPostgres({ dataFolder })).rejects.toThrow(/already runs on .*used for another program/)
    expect(await isListening(first.port)).toBe(true)
    await first.stop()
  })

  test('replaces a server whose parent was killed', async () => {
    const dataFolder = join(folder, 'killed')
    const orphaned = await startElsewhere(dataFolder)
    orphaned.starter.kill('SIGKILL')
    const next = await startPostgres({ dataFolder })
    expect(next.pid).not.toBe(orphaned.pid)
    expect(await isListening(orphaned.port)).toBe(false)
    await next.stop()

    // Runs Postgres without a guard, as after the out-of-memory killer has ended both the program and its guard.
    const account = accountToUse()
    const postgres = join(await findBinaries(account), 'bin', 'postgres')
    const settings = ['-c', `port=${next.port}`, '-c', 'unix_socket_directories=']
    const named = pathFromInside(dataFolder, account)
    const unguarded = spawn(postgres, ['-D', named, ...settings], { stdio: 'ignore', cwd: dataFolder, ...account })
    while (!(await isListening(next.port))) await sleep(10)
    const last = await startPostgres({ dataFolder })
    expect(unguarded.exitCode).toBe(0)
    await last.stop()
  })

  test('rejects with the reason when the port is in use', async () => {
    const dataFolder = join(folder, 'port')
    const first = await startPostgres({ dataFolder })
    const other = startPostgres({ dataFolder: join(folder, 'other'), port: first.port })
    await expect(other).rejects.toThrow(new RegExp(`did not start on port ${first.port}: .*already in use`, 'i'))
    await first.stop()
    const bad = startPostgres({ dataFolder, settings: { shared_buffers: 'much' } })
    await expect(bad).rejects.toThrow(/did not start .*shared_buffers/)
  })
})
