import { createServer } from 'node:net'

import { expect, test } from 'vitest'

import { readStartConfig } from '../src/config.ts'
import { checkPorts, listenOn } from '../src/ports.ts'

test('everything has a default', () => {
  const config = readStartConfig({})
  expect([config.GATEWAY_PORT, config.VALIDATOR_PORT, config.MANAGEMENT_PORT]).toEqual([8000, 8080, 8081])
  expect(config.DATABASE_URL).toBeUndefined()
})

test('a port for two programs is refused; 0 may be given to all', () => {
  expect(() => readStartConfig({ GATEWAY_PORT: '8081' })).toThrow('MANAGEMENT_PORT and GATEWAY_PORT are both 8081')
  expect(readStartConfig({ GATEWAY_PORT: '0', VALIDATOR_PORT: '0' }).VALIDATOR_PORT).toBe(0)
})

test('taken ports are named with their variables', async () => {
  const server = createServer()
  const port = await listenOn(server, 0)
  await expect(checkPorts({ GATEWAY_PORT: port, VALIDATOR_PORT: 0 }, 200)).rejects.toThrow(
    `Port ${port} is taken by another program; set GATEWAY_PORT to a free port`,
  )
  setTimeout(() => server.close(), 100)
  await checkPorts({ GATEWAY_PORT: port })
})
