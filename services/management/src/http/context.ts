/** What the endpoints need from the process, made once at start and handed to every call. */
import type { ClientResolver } from '@keyward/address'
import type { Database } from '@keyward/database'
import type { Logger } from '@keyward/process'
import type { Kysely } from 'kysely'

import type { Keyring } from '../keyring/keyring.ts'

/** The pool, or a transaction on it. */
export type Db = Kysely<Database>

export interface Services {
  db: Db
  resolver: ClientResolver
  keyring: Keyring
  log: Logger
  operatorToken: string
}
