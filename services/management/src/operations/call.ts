/** The input and the context of the handler of an operation. */

import type { Actor, Permission } from '@keyward/contract'

import type { CallerCredential, Db, PortalAccess } from '../context.ts'
import type { Site } from '../http/site.ts'
import type { Dependencies } from './dependencies.ts'

/** The caller's address and country. Each is null when it is unknown. */
export interface RequestOrigin {
  ip: string | null
  country: string | null
}

/** The headers by which a handler recognizes a browser and its page. */
interface BrowserHeaders {
  cookie: string | undefined
  origin: string | undefined
}

export interface Call<Params, Query, Body> {
  params: Params
  query: Query
  body: Body
  /** The pool for reads if the endpoint is a GET or read-only, the pool for changes if it is detached, and otherwise a transaction. */
  db: Db
  dependencies: Dependencies
  actor: Actor
  /** The headers of the response. The handler may add others. */
  headers: Record<string, string>
  /** Returns the site that the `Host` header names, or null when the header is missing or malformed. */
  site: () => Site | null
  /** The session that authenticated the request, or null when a secret did. */
  session: { id: string } | null
  origin(): RequestOrigin
  /** Whether the request is a HEAD, which returns no body. A handler records nothing for it. */
  isHead: boolean
  browser: BrowserHeaders
  /** The bytes of the body, if the request needs a signature, and the headers. */
  received: { bytes: Uint8Array; header: (name: string) => string | undefined }
}

export interface VendorCall<Params, Query, Body> extends Call<Params, Query, Body> {
  /** The id of the organization, or '' when the operator calls an operation of any person. */
  organizationId: string
  permissions: ReadonlySet<Permission>
  credential: CallerCredential
}

export interface PortalCall<Params, Query, Body> extends Call<Params, Query, Body> {
  organizationId: string
  portal: PortalAccess
}
