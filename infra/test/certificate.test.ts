/** Tests infra/haproxy/run.sh, which reloads haproxy when its certificate has been renewed. */

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { isInstalled } from '../cluster/balancer.ts'
import { freePort } from '../shared/ports.ts'
import { INFRA } from './manifests.ts'

const canRun = isInstalled('haproxy', '-v') && isInstalled('openssl', 'version')

describe.skipIf(!canRun)('run.sh (needs haproxy and openssl)', { timeout: 30_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-certificate-'))
  let port = 0
  let program: ReturnType<typeof spawn>

  function makeCertificate(name: string): string {
    const pem = join(folder, `new-${name}.pem`)
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', `/CN=${name}`]
    execFileSync('openssl', ['req', '-x509', ...options, '-keyout', `${pem}.key`, '-out', pem], { stdio: 'ignore' })
    return pem
  }

  /** Replaces the files by renaming, as Kubernetes replaces the files of a mounted secret. */
  function renew(name: string): void {
    const pem = makeCertificate(name)
    renameSync(`${pem}.key`, join(folder, 'tls.pem.key'))
    renameSync(pem, join(folder, 'tls.pem'))
  }

  async function open(): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    return socket
  }

  async function servedName(): Promise<string> {
    try {
      const socket = await open()
      const { CN } = socket.getPeerCertificate().subject
      socket.destroy()
      return String(CN)
    } catch {
      return 'none'
    }
  }

  beforeAll(async () => {
    chmodSync(folder, 0o755)
    port = await freePort()
    renew('first')
    const timeouts = ['connect', 'client', 'server'].map((name) => `  timeout ${name} 30s`).join('\n')
    const listener = `frontend edge\n  bind 127.0.0.1:${port} ssl crt ${folder}/tls.pem\n  http-request return status 200`
    writeFileSync(join(folder, 'haproxy.cfg'), `defaults\n  mode http\n${timeouts}\n${listener}\n`)
    program = spawn('sh', [join(INFRA, 'haproxy/run.sh'), join(folder, 'haproxy.cfg'), folder], {
      env: { ...process.env, CERTIFICATE_INTERVAL: '0.1' },
      stdio: 'ignore',
    })
  }, 240_000)

  afterAll(() => {
    program.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  test('serves a renewed certificate and keeps the open connections', async () => {
    await expect.poll(servedName, { timeout: 20_000 }).toBe('first')
    const earlier = await open()
    renew('second')
    await expect.poll(servedName, { timeout: 20_000 }).toBe('second')
    earlier.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
    const response = await new Promise<string>((resolve) => {
      earlier.once('data', (chunk: Buffer) => resolve(chunk.toString()))
    })
    expect(response).toMatch(/^HTTP\/1\.1 200 /)
    earlier.destroy()
  })

  test('keeps serving the last certificate while the renewed one is invalid, and serves the next valid one', async () => {
    writeFileSync(join(folder, 'tls.pem'), 'not a certificate')
    for (let attempt = 0; attempt < 20; attempt++) expect(await servedName()).not.toBe('none')
    renew('third')
    await expect.poll(servedName, { timeout: 20_000 }).toBe('third')
  })

  test('ends when it receives SIGUSR1, the signal for a graceful stop', async () => {
    const ended = once(program, 'exit')
    program.kill('SIGUSR1')
    expect(await ended).toBeDefined()
    expect(await servedName()).toBe('none')
  })
})
