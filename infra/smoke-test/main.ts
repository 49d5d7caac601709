/**
 * `node infra/smoke-test/main.ts`: tests an installation. KEYWARD_URL is the base address of the installation. KEYWARD_CONNECT_TO is the host and
 * port to connect to instead, and KEYWARD_CA_FILE the CA certificate that verifies the certificate of the balancer.
 */

import { readFileSync } from 'node:fs'

import { failStart, readConfig, reportOldNames, secret, text } from '@keyward/runtime'
import { z } from 'zod'

import { createHttpsClient } from '../shared/https-client.ts'
import { runSmokeTest } from './smoke-test.ts'

const configSchema = z.object({
  KEYWARD_URL: z.url({ protocol: /^https$/ }),
  OPERATOR_TOKEN: secret(32),
  CONNECT_TO: text('a host and a port').optional(),
  CA_FILE: text('the path of a PEM file').optional(),
})

async function main(): Promise<void> {
  const config = readConfig(configSchema)
  reportOldNames(configSchema)
  const certificate = config.CA_FILE === undefined ? undefined : readFileSync(config.CA_FILE, 'utf8')
  const client = createHttpsClient(config.KEYWARD_URL, certificate, 4, { connectTo: config.CONNECT_TO })
  const report = (line: string): unknown => process.stdout.write(`${line}\n`)
  await runSmokeTest({ client, operatorToken: config.OPERATOR_TOKEN, report })
  client.close()
}

main().catch(failStart)
