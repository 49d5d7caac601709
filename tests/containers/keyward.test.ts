/** Builds the image that contains everything, and runs it with its own Postgres and with another. Skipped without a container engine. */

import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { freePort } from '../faults/support/children.ts'
import { provideBaseImages } from './support/base-images.ts'
import { docker, missingResponse } from './support/docker.ts'

const ROOT = join(import.meta.dirname, '../..')
const IMAGE = 'keyward-test-all-in-one'
const missing = missingResponse()
if (missing !== null) process.stdout.write(`The tests of the image keyward are skipped: ${missing}.\n`)

describe.skipIf(missing !== null)('the image keyward', () => {
  const names: string[] = []
  beforeAll(() => {
    const bases = Object.entries(provideBaseImages(['node']))
    const stage = `NODE_STAGE=node-${process.arch === 'arm64' ? 'arm64' : 'amd64'}`
    const args = [...bases.map(([name, image]) => `${name}=${image}`), stage].flatMap((one) => ['--build-arg', one])
    docker(['build', '--file', 'infra/docker/keyward.Dockerfile', '--tag', IMAGE, ...args, '.'], { cwd: ROOT })
  })
  afterAll(() => {
    for (const name of names) docker(['rm', '--force', '--volumes', name], { mayFail: true })
  })

  /** Starts a container, and returns its log when it prints the commands to try. */
  async function start(name: string, args: readonly string[]): Promise<string> {
    names.push(name)
    docker(['run', '--detach', '--name', name, ...args, IMAGE])
    for (let attempt = 0; attempt < 600; attempt++) {
      const { stdout, stderr } = spawnSync('docker', ['logs', name], { encoding: 'utf8' })
      if (stdout.includes('Stop with Ctrl-C')) return stdout
      if (docker(['inspect', '--format', '{{.State.Running}}', name]).output.trim() !== 'true') throw new Error(stderr)
      await sleep(200)
    }
    throw new Error('The container did not become ready.')
  }

  const curlOf = (log: string, port: number): string =>
    (/^ {2}(curl .*validate.*)$/m.exec(log)?.[1] ?? '').replace('127.0.0.1:8000', `127.0.0.1:${port}`)

  test('starts with its own Postgres, contains the command line, and keeps its data in the volume', async () => {
    const port = await freePort()
    const name = `${IMAGE}-${process.pid}`
    const args = ['--volume', `${name}:/data`, '--publish', `127.0.0.1:${port}:8000`]
    const log = await start(name, args)
    expect(execFileSync('sh', ['-c', curlOf(log, port)], { encoding: 'utf8' })).toContain('"code":"VALID"')
    expect(docker(['exec', name, 'keyward', '--version']).output).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(docker(['exec', name, 'keyward', 'license', 'list', '--json']).output).toContain('"key"')
    docker(['stop', '--time', '30', name])
    expect(docker(['inspect', '--format', '{{.State.ExitCode}}', name]).output.trim()).toBe('0')
    const again = await start(`${name}-again`, args)
    expect(curlOf(again, port)).toBe(curlOf(log, port))
  })

  test('starts with the Postgres that KEYWARD_DATABASE_URL names', async () => {
    const name = `${IMAGE}-own-${process.pid}`
    await start(name, [])
    const file = docker(['exec', name, 'cat', '/data/.keyward/demo.json']).output
    const { databaseUrl } = z.object({ databaseUrl: z.url() }).parse(JSON.parse(file))
    const create = `import { createPool } from '/keyward/packages/database/src/index.ts'
      const pool = createPool('${databaseUrl}', { name: 'test', max: 1 })
      await pool.query('create database other')
      await pool.end()`
    docker(['exec', name, 'node', '--input-type=module', '--eval', create])
    const own = new URL(databaseUrl)
    own.pathname = '/other'
    // Both containers have one network, because the Postgres of the first one listens only on its loopback address.
    const ports = ['GATEWAY', 'VALIDATOR', 'VALIDATOR_ADMIN', 'MANAGEMENT', 'MANAGEMENT_ADMIN']
    const variables = [...ports.map((one) => `${one}_PORT=0`), `KEYWARD_DATABASE_URL=${own.href}`]
    const second = `${name}-second`
    const log = await start(second, ['--network', `container:${name}`, ...variables.flatMap((one) => ['--env', one])])
    const key = /"license":"([^"]+)"/.exec(log)?.[1] ?? ''
    expect(docker(['exec', second, 'keyward', 'check', key, '--machine', 'm']).output).toMatch(/^VALID/)
    expect(docker(['exec', second, 'ls', '/data/.keyward']).output).not.toContain('postgres')
  })
})
