/** The cases of proxies that the environment names, and of calls that the app cancels. */

import { createServer } from 'node:http'

import { ClientProgram } from '../protocol.ts'
import { listen } from '../service/listen.ts'
import { OFFLINE_VALID, ONLINE_VALID, requireEqual, requireFields } from '../world.ts'
import { getFile, type Scenario } from './scenario.ts'

export const proxyScenarios: readonly Scenario[] = [
  {
    name: 'requests go through the proxy that `HTTPS_PROXY` names, except to the hosts in `NO_PROXY`',
    async run(world) {
      const targets: string[] = []
      const proxy = createServer().on('connect', ({ url = '' }, socket) => {
        targets.push(url)
        socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
      })
      const { url, close } = await listen(proxy)
      // Node reads these variables only if the first one is set.
      const environment = ['NODE_USE_ENV_PROXY=1', `HTTPS_PROXY=${url}`, 'NO_PROXY=127.0.0.1,example.org']
      const program = new ClientProgram([
        'env',
        '-u',
        'https_proxy',
        '-u',
        'no_proxy',
        ...environment,
        ...world.command,
      ])
      try {
        await getFile(world)
        for (const host of ['licenses.example.com', '127.0.0.1:9', 'licenses.example.com:8443']) {
          const baseUrl = `https://${host}`
          requireFields('open', await program.send(world.openCommand({ baseUrl })), {})
          requireFields('validate', await program.send({ command: 'validate' }), OFFLINE_VALID)
        }
        requireEqual('the targets', [...new Set(targets)], ['licenses.example.com:443', 'licenses.example.com:8443'])
      } finally {
        program.stop()
        await close()
      }
    },
  },
  {
    name: 'a cancelled call ends at once, and the stored file can still be used',
    async run(world) {
      await getFile(world)
      // Without a cancellation, a second request follows after half of this time.
      await world.open({ timeoutMs: 20_000 })
      world.gateway.fault = { kind: 'hang' }
      const reply = await world.program.send({ command: 'validateAndCancel', afterMs: 300 })
      if (reply['cancelled'] !== true) requireFields('validateAndCancel', reply, OFFLINE_VALID)
      requireEqual('the number of requests', world.gateway.requests.length, 1)
      await world.requireResult('validate', OFFLINE_VALID)
      world.gateway.fault = { kind: 'none' }
      await world.requireResult('validate', ONLINE_VALID)
    },
  },
]
