/** The cases of a network that is half dead: every call ends within its time budget, and the stored file decides. */

import { once } from 'node:events'
import { createServer } from 'node:net'

import { ClientProgram } from '../protocol.ts'
import { BLACK_HOLED, inDeadNetwork, missingForDeadNetwork, UNRESOLVABLE } from '../service/dead-network.ts'
import { OFFLINE_VALID, requireFields, type World } from '../world.ts'
import { getFile, type Scenario } from './scenario.ts'

// Without a deadline, each of these faults lasts for at least 10 seconds.
const BUDGET_MS = 3000

/** Requires that the stored file decides, and that the check ends in time. */
async function requireInTime({ lateness }: World, check: () => Promise<unknown>): Promise<void> {
  const started = performance.now()
  await check()
  const ms = Math.round(performance.now() - started)
  if (ms > lateness * BUDGET_MS) throw new Error(`The call took ${ms} ms, although its time budget is ${BUDGET_MS} ms.`)
}

async function checkInDeadNetwork(world: World, baseUrl: string): Promise<void> {
  await getFile(world)
  const program = new ClientProgram(await inDeadNetwork(world.command, world.folder))
  try {
    requireFields('open', await program.send(world.openCommand({ baseUrl, timeoutMs: BUDGET_MS })), {})
    await requireInTime(world, async () =>
      requireFields('validate', await program.send({ command: 'validate' }), OFFLINE_VALID),
    )
  } finally {
    program.stop()
  }
}

export const timedScenarios: readonly Scenario[] = [
  {
    name: 'no name server answers',
    missing: missingForDeadNetwork,
    run: (world) => checkInDeadNetwork(world, UNRESOLVABLE),
  },
  {
    name: 'the three addresses of the host drop every packet',
    missing: missingForDeadNetwork,
    run: (world) => checkInDeadNetwork(world, BLACK_HOLED),
  },
  {
    name: 'the TLS handshake gets no response',
    async run(world) {
      const server = createServer((socket) => socket.on('error', () => socket.destroy()).resume())
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const address = server.address()
      const port = typeof address === 'object' ? address?.port : undefined
      try {
        await getFile(world)
        await world.open({ baseUrl: `https://127.0.0.1:${port}`, timeoutMs: BUDGET_MS })
        await requireInTime(world, () => world.requireResult('validate', OFFLINE_VALID))
      } finally {
        server.close()
      }
    },
  },
  {
    name: 'the response arrives with one byte a second',
    async run(world) {
      await getFile(world)
      await world.open({ timeoutMs: BUDGET_MS })
      const start = 'HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n'
      world.gateway.fault = { kind: 'trickle', start, pauseMs: 1000 }
      await requireInTime(world, () => world.requireResult('validate', OFFLINE_VALID))
    },
  },
]
