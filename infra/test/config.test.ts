import { createServer } from 'node:net'

import { expect, test } from 'vitest'

import { choosePorts, listenOn } from '../shared/ports.ts'
import { readStartConfig } from '../start/config.ts'

test('every variable has a default', () => {
  const config = readStartConfig({})
  expect([config.GATEWAY_PORT, config.VALIDATOR_PORT, config.MANAGEMENT_PORT]).toEqual([8000, 8080, 8081])
  expect(config.DATABASE_URL).toBeUndefined()
})

test('rejects the same port for two programs, unless the port is 0', () => {
  expect(() => readStartConfig({ GATEWAY_PORT: '8081' })).toThrow(
    'KEYWARD_MANAGEMENT_PORT and KEYWARD_GATEWAY_PORT are both 8081',
  )
  expect(readStartConfig({ GATEWAY_PORT: '0', VALIDATOR_PORT: '0' }).VALIDATOR_PORT).toBe(0)
})

test('rejects a taken port with an error that names the port and its variable', async () => {
  const server = createServer()
  const port = await listenOn(server, 0)
  await expect(choosePorts({ GATEWAY_PORT: port, VALIDATOR_PORT: 0 }, 200)).rejects.toThrow(
    `Port ${port} is taken by another program; set KEYWARD_GATEWAY_PORT to a free port`,
  )
  setTimeout(() => server.close(), 100)
  expect(await choosePorts({ GATEWAY_PORT: port })).toEqual({ GATEWAY_PORT: port })
})

test('chooses free ports outside the range of outgoing connections', async () => {
  const { a, b } = await choosePorts({ a: 0, b: 0 })
  expect(a).not.toBe(b)
  expect([a, b].every((port) => port >= 10_240 && port < 32_768)).toBe(true)
})
