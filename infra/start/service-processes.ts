/**
 * Both services, kept running, each with the environment that it may see: secrets go to management alone, and the
 * validator gets no database but its own.
 */
import { ConfigError } from '@keyward/process'

import { startService, type Service, type ServiceName } from '../shared/service-process.ts'
import { portsOf, type StartConfig } from './config.ts'
import type { StartDatabase } from './database.ts'
import { keepRunning, type Kept } from './supervisor.ts'

export interface Secrets {
  operatorToken: string
  masterKey: string
  /** While the master key is being replaced. */
  masterKeyPrevious: string | undefined
}

export interface Services {
  validator: Kept<Service>
  management: Kept<Service>
}

type Environment = Record<string, string | undefined>

/** Starts both at once. When one cannot start, the other is stopped, and what they said is one error. */
export async function startServices(
  config: StartConfig,
  secrets: Secrets,
  database: StartDatabase,
  report: (line: string) => void,
): Promise<Services> {
  const [validator, management] = await Promise.allSettled([
    keepService('validator', validatorEnvironment(config, database), report),
    keepService('management', managementEnvironment(config, secrets, database), report),
  ])
  if (validator.status === 'fulfilled' && management.status === 'fulfilled')
    return { validator: validator.value, management: management.value }
  const reasons = new Set<string>()
  for (const result of [validator, management]) {
    if (result.status === 'fulfilled') await result.value.stop()
    else for (const line of reasonOf(result.reason).split('\n')) reasons.add(line)
  }
  throw new ConfigError([...reasons].join('\n'))
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function keepService(name: ServiceName, env: Environment, report: (line: string) => void): Promise<Kept<Service>> {
  return keepRunning(`The ${name}`, () => startService(name, env), report)
}

function commonEnvironment(config: StartConfig): Environment {
  const {
    DATABASE_URL: _url,
    OPERATOR_TOKEN: _token,
    MASTER_KEY: _key,
    MASTER_KEY_PREVIOUS: _previous,
    ...env
  } = process.env
  const ports = Object.fromEntries(Object.entries(portsOf(config)).map(([name, port]) => [name, String(port)]))
  return { ...env, ...ports, LOG_LEVEL: config.LOG_LEVEL, TRUSTED_PROXIES: withGateway(config.TRUSTED_PROXIES) }
}

function validatorEnvironment(config: StartConfig, database: StartDatabase): Environment {
  return { ...commonEnvironment(config), VALIDATOR_DATABASE_URL: database.validatorUrl }
}

function managementEnvironment(config: StartConfig, secrets: Secrets, database: StartDatabase): Environment {
  const { VALIDATOR_DATABASE_URL: _url, ...env } = commonEnvironment(config)
  const { operatorToken: OPERATOR_TOKEN, masterKey: MASTER_KEY, masterKeyPrevious: MASTER_KEY_PREVIOUS } = secrets
  return { ...env, DATABASE_URL: database.url, OPERATOR_TOKEN, MASTER_KEY, MASTER_KEY_PREVIOUS }
}

/** The gateway of this start is a proxy that the services trust, beside those that are given. */
function withGateway(trustedProxies: string | undefined): string {
  if (trustedProxies === 'all') return 'all'
  return ['127.0.0.0/8', '::1', trustedProxies].filter((part) => part !== undefined).join(',')
}
