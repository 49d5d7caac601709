import { createServer } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { Responder, Streamed } from '../../src/http/response.ts'

async function* endless(chunk: string) {
  for (;;) {
    await sleep(1)
    yield chunk
  }
}

/**
 * Starts an endless response, and resolves when it has ended. `reads` is whether the caller reads it, and `leaves` whether the caller
 * disconnects before the response starts.
 */
async function endOf(limits: { totalMs: number; idleMs: number }, reads: boolean, leaves = false): Promise<string> {
  const log = { error: () => undefined }
  const closed = Promise.withResolvers<string>()
  const server = createServer((_request, response) => {
    const stream = new Streamed(endless('x'.repeat(reads ? 1 : 100_000)), () => closed.resolve('closed'))
    const send = () => new Responder(log, limits).send(response, { status: 200, headers: {}, body: '', stream })
    if (!leaves) return send()
    response.once('close', () => setImmediate(send))
    caller.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const caller = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1')
  caller.on('error', () => undefined).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  if (reads) caller.resume()
  const result = await closed.promise
  caller.destroy()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  return result
}

const HOUR = 3_600_000

test('ends a streamed response that a caller reads for too long', async () => {
  await expect(endOf({ totalMs: 100, idleMs: HOUR }, true)).resolves.toBe('closed')
})

test('ends a streamed response that a caller does not read', async () => {
  await expect(endOf({ totalMs: HOUR, idleMs: 100 }, false)).resolves.toBe('closed')
})

test('closes the stream of a response whose caller has left before it', async () => {
  await expect(endOf({ totalMs: HOUR, idleMs: HOUR }, true, true)).resolves.toBe('closed')
}, 5_000)
