/**
 * Runs the supervised services of `npm start`, each with a restricted environment. Only management receives the operator token and the
 * master keys. Each service receives only its own database URL.
 */

import { ConfigError, fullName } from '@keyward/runtime'

import { startService, type ServiceProcess, type ServiceName } from '../shared/service-process.ts'
import { configSchema, portsOf, type StartConfig } from './config.ts'
import type { StartDatabase } from './database.ts'
import { supervise, type Supervised } from './supervisor.ts'

export interface Secrets {
  operatorToken: string
  masterKey: string
  /** The previous master key, which is set only while the master key is being replaced. */
  masterKeyPrevious: string | undefined
}

interface ServiceProcesses {
  validator: Supervised<ServiceProcess>
  management: Supervised<ServiceProcess>
}

type Environment = Record<string, string | undefined>

/** Starts both services concurrently. If one fails, stops the other and rejects with one ConfigError that contains all reasons. */
export async function startServiceProcesses(
  config: StartConfig,
  secrets: Secrets,
  database: StartDatabase,
  indexFile: string,
  report: (line: string) => void,
): Promise<ServiceProcesses> {
  const [validator, management] = await Promise.allSettled([
    superviseService('validator', validatorEnvironment(config, database, indexFile), report),
    superviseService('management', managementEnvironment(config, secrets, database), report),
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

function superviseService(
  name: ServiceName,
  env: Environment,
  report: (line: string) => void,
): Promise<Supervised<ServiceProcess>> {
  return supervise(`The ${name}`, () => startService(name, env), report)
}

/** Returns the variables of this process, without those that `npm start` reads itself, and the variables of both services. */
function commonEnvironment(config: StartConfig): Environment {
  const own = new Set(Object.keys(configSchema.shape).flatMap((key) => [key, fullName(key)]))
  const inherited = Object.entries(process.env).filter(([name]) => !own.has(name))
  const { VALIDATOR_HOST, MANAGEMENT_HOST, LOG_LEVEL } = config
  const TRUSTED_PROXIES = withGateway(config.TRUSTED_PROXIES)
  const common = { ...portsOf(config), VALIDATOR_HOST, MANAGEMENT_HOST, LOG_LEVEL, TRUSTED_PROXIES }
  return { ...Object.fromEntries(inherited), ...withFullNames(common) }
}

function validatorEnvironment(config: StartConfig, database: StartDatabase, indexFile: string): Environment {
  const env = commonEnvironment(config)
  // An empty value means no index file.
  const isGiven = ['INDEX_FILE', 'KEYWARD_INDEX_FILE'].some((name) => env[name] !== undefined)
  const own = { VALIDATOR_DATABASE_URL: database.validatorUrl, ...(isGiven ? {} : { INDEX_FILE: indexFile }) }
  return { ...env, ...withFullNames(own) }
}

function managementEnvironment(config: StartConfig, secrets: Secrets, database: StartDatabase): Environment {
  const { operatorToken: OPERATOR_TOKEN, masterKey: MASTER_KEY, masterKeyPrevious: MASTER_KEY_PREVIOUS } = secrets
  const own = { DATABASE_URL: database.managementUrl, OPERATOR_TOKEN, MASTER_KEY, MASTER_KEY_PREVIOUS }
  return { ...commonEnvironment(config), ...withFullNames(own) }
}

function withFullNames(values: Record<string, string | number | undefined>): Environment {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([key, value]) => [fullName(key), String(value)]))
}

/** Returns the proxies that the services trust: the gateway in addition to the configured ones. */
function withGateway(trustedProxies: string | undefined): string {
  if (trustedProxies === 'all') return 'all'
  return ['127.0.0.0/8', '::1', trustedProxies].filter((part) => part !== undefined).join(',')
}
