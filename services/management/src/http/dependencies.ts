/** The dependencies of the endpoints: created once at start and passed to every handler. */

import type { OriginResolver } from '@keyward/address'
import type { Logger } from '@keyward/process'

import type { Keyring } from '../keyring/keyring.ts'
import type { Db } from './context.ts'

export interface Dependencies {
  db: Db
  resolver: OriginResolver
  keyring: Keyring
  log: Logger
  operatorToken: string
}
