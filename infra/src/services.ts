/**
 * Both services, kept running, each with the environment that it may see: secrets go to management alone, and the
 * validator gets no database but its own.
 */
import { ConfigError } from '@keyward/process'

import type { StartConfig } from './config.ts'
import type { StartDatabase } from './database.ts'
import { startService, type Service, type ServiceName } from './service.ts'
import { keepRunning, type Kept } from './supervisor.ts'

export interface Secrets {
  operatorToken: string
  masterKey: string
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

/** Ports that the system chose at the first start stay the same at later ones. */
function keepService(name: ServiceName, env: Environment, report: (line: string) => void): Promise<Kept<Service>> {
  const prefix = name.toUpperCase()
  let ports: Environment = {}
  const begin = async (): Promise<Service> => {
    const service = await startService(name, { ...env, ...ports })
    ports = { [`${prefix}_PORT`]: String(service.port), [`${prefix}_ADMIN_PORT`]: String(service.adminPort) }
    return service
  }
  return keepRunning(`The ${name}`, begin, report)
}

function commonEnvironment(config: StartConfig): Environment {
  const { DATABASE_URL: _url, OPERATOR_TOKEN: _token, MASTER_KEY: _key, ...env } = process.env
  return { ...env, LOG_LEVEL: config.LOG_LEVEL, TRUSTED_PROXIES: withGateway(config.TRUSTED_PROXIES) }
}

function validatorEnvironment(config: StartConfig, database: StartDatabase): Environment {
  return { ...commonEnvironment(config), VALIDATOR_DATABASE_URL: database.validatorUrl }
}

function managementEnvironment(config: StartConfig, secrets: Secrets, database: StartDatabase): Environment {
  const { VALIDATOR_DATABASE_URL: _url, ...env } = commonEnvironment(config)
  return { ...env, DATABASE_URL: database.url, OPERATOR_TOKEN: secrets.operatorToken, MASTER_KEY: secrets.masterKey }
}

/** The gateway of this start is a proxy that the services trust, beside those that are given. */
function withGateway(trustedProxies: string | undefined): string {
  if (trustedProxies === 'all') return 'all'
  return ['127.0.0.0/8', '::1', trustedProxies].filter((part) => part !== undefined).join(',')
}
