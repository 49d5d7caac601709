export { type ActivityRow, toActivityColumns, toActivityRows } from './activity.ts'
export * from './builders.ts'
export {
  createTestDatabase,
  MANAGEMENT_LOGIN,
  onServer,
  SERVER_VARIABLE,
  TEMPLATE_VARIABLE,
  type TestDatabase,
  VALIDATOR_LOGIN,
  withDatabase,
} from './database.ts'
export { type TestBalancer, isBehindBalancer, type Ports, startBalancer } from './test-balancer.ts'
export { type CallProxy, startCallProxy } from './call-proxy.ts'
export { copyPreviousSchema } from './previous-schema.ts'
export { type Proxy, startProxy } from './proxy.ts'
export { createSigningKey, delegate, type SigningKey } from './signing-keys.ts'
export { type Random, random } from './random.ts'
export { startValidatorProcess, type ValidatorProcess } from './validator-process.ts'
