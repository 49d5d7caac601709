/**
 * Defines the environment variables that `npm start` itself reads. All other variables are passed to the services unchanged, and the
 * services validate them.
 */

import { parseTrustedProxies } from '@keyward/address'
import { ConfigError, fullName, host, logLevel, port, postgresUrl, readConfig, text, variable } from '@keyward/runtime'
import { z } from 'zod'

export const configSchema = z.object({
  GATEWAY_HOST: host().default('127.0.0.1'),
  GATEWAY_PORT: port().default(8000),
  VALIDATOR_HOST: host().default('127.0.0.1'),
  VALIDATOR_PORT: port().default(8080),
  VALIDATOR_ADMIN_PORT: port().default(9080),
  MANAGEMENT_HOST: host().default('127.0.0.1'),
  MANAGEMENT_PORT: port().default(8081),
  MANAGEMENT_ADMIN_PORT: port().default(9081),
  DATABASE_URL: postgresUrl().optional(),
  VALIDATOR_DATABASE_URL: postgresUrl().optional(),
  OPERATOR_TOKEN: text().optional(),
  MASTER_KEY: text().optional(),
  MASTER_KEY_PREVIOUS: text().optional(),
  // The value is validated here as well, because the services receive it with the gateway's address added.
  TRUSTED_PROXIES: variable('addresses and CIDR ranges separated by commas, or all', (value) =>
    parseTrustedProxies(value) === null ? undefined : value,
  ).optional(),
  LOG_LEVEL: logLevel().default('warn'),
})

export type StartConfig = z.infer<typeof configSchema>

type PortVariable = `${'GATEWAY' | 'VALIDATOR' | 'VALIDATOR_ADMIN' | 'MANAGEMENT' | 'MANAGEMENT_ADMIN'}_PORT`

/** Returns the ports by the names of their variables. */
export function portsOf(config: StartConfig): Record<PortVariable, number> {
  const { GATEWAY_PORT, VALIDATOR_PORT, VALIDATOR_ADMIN_PORT, MANAGEMENT_PORT, MANAGEMENT_ADMIN_PORT } = config
  return { GATEWAY_PORT, VALIDATOR_PORT, VALIDATOR_ADMIN_PORT, MANAGEMENT_PORT, MANAGEMENT_ADMIN_PORT }
}

/** Reads the configuration. Throws ConfigError if a value is invalid or two programs would share a port. */
export function readStartConfig(env: Record<string, string | undefined>): StartConfig {
  const config = readConfig(configSchema, env)
  const owners = new Map<number, string>()
  for (const [name, number] of Object.entries(portsOf(config))) {
    const owner = owners.get(number)
    if (number !== 0 && owner !== undefined)
      throw new ConfigError(`${fullName(name)} and ${fullName(owner)} are both ${number}; set them to different ports`)
    owners.set(number, name)
  }
  return config
}
