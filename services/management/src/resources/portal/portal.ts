import { portal as ofCustomers, portalSessions as ofVendors } from '@keyward/contract/management/portal'

import { audit } from '../../audit/writer.ts'
import { ApiError } from '../../http/problem.ts'
import { portalCookie, type Site } from '../../http/site.ts'
import { addLinkMail } from '../../mails/outbox.ts'
import { implement } from '../../operations/implement.ts'
import { countAct, listOwnLicenses, readOwnLicense, releaseOwn } from './licenses.ts'
import { createPortalSession, endPortalSessions, openPortalSession, readPortalSession } from './store.ts'

export const portalTag = {
  name: 'Portal',
  description: 'The page on which customers see their licenses and free slots.',
}

/** Returns the origin of the page for a request to this site. A service at a loopback address has no TLS. */
function originOf(site: Site | null, origin: string | undefined): string {
  if (site === null) throw new ApiError('INVALID_REQUEST', 'The header Host must name the host of this service.')
  const [secure = '', plain = secure] = site.origins
  return origin !== undefined && site.origins.includes(origin) ? origin : plain
}

export const portalSessions = implement(portalTag, ofVendors, {
  createPortalSession: {
    summary: 'Create a link to the portal for a customer',
    description:
      'The link works once, for 15 minutes, and opens a session of 24 hours. Its host is that of this request. The page shows the licenses of the ' +
      'customer and, on request, their keys. It therefore also requires the permissions `licenses.read` and `customers.read`. API keys cannot ' +
      'create links.',
    handle(call) {
      for (const shown of ['licenses.read', 'customers.read'] as const)
        if (!call.permissions.has(shown))
          throw new ApiError(
            'FORBIDDEN',
            `The portal shows the customer and its licenses. A link also requires ${shown}.`,
          )
      return createPortalSession(call, { ...call.body, origin: originOf(call.site(), call.browser.origin) })
    },
  },
  endPortalSessions: {
    summary: 'End all links and sessions of a customer in the portal',
    handle: (call) => endPortalSessions(call, call.params.id),
  },
})

export const portal = implement(portalTag, ofCustomers, {
  openPortalSession: {
    summary: 'Open the portal',
    description: 'Exchanges the code of a link for the cookie of a session. The code works once.',
    async handle({ db, body, headers, site }) {
      const { secret, session } = await openPortalSession(db, body.code)
      headers['set-cookie'] = portalCookie(site(), secret, new Date(session.expiresAt))
      return session
    },
  },
  requestPortalLink: {
    summary: 'Request a link to the portal by mail',
    description:
      'The response is the same whether a customer has the address or not, and whether the vendor sends links by mail or not. ' +
      'An address receives at most 3 links in an hour.',
    async handle(call) {
      const { organizationId, email } = call.body
      if (call.dependencies.signInLimiter.mayRequestLink(organizationId, email, call.origin().ip))
        await addLinkMail(call.db, organizationId, email)
    },
  },
  readPortalSession: {
    summary: 'Read the session of the portal',
    handle: (call) => readPortalSession(call, call.portal.sessionId),
  },
  endPortalSession: {
    summary: 'Leave the portal',
    async handle(call) {
      const { db, organizationId, portal: own, headers, site } = call
      const { numDeletedRows } = await db
        .deleteFrom('portalSessions')
        .where('organizationId', '=', organizationId)
        .where('id', '=', own.sessionId)
        .executeTakeFirstOrThrow()
      // A preview is a session of a member.
      if (numDeletedRows > 0n && !own.isPreview)
        await audit(call, { action: 'portal.ended', resourceType: 'customer', resourceId: own.customerId })
      headers['set-cookie'] = portalCookie(site(), '', new Date(0))
    },
  },
  listPortalLicenses: {
    summary: 'List the licenses of the customer',
    description: 'Newest first, with up to 100 machines each. Contains no license key.',
    handle: (call) => listOwnLicenses(call, call.query),
  },
  readPortalKey: {
    summary: 'Read the key of a license',
    handle: async (call) => ({ key: (await readOwnLicense(call, call.params.id)).key }),
  },
  releasePortalMachine: {
    summary: 'Free the slot of a machine',
    description:
      'Requires the action `release`, and a license with `policy.maxReleases` or `policy.leaseSeconds`. `released` is false if the license ' +
      'allows no further release, or if the file of the machine is still valid.',
    errors: ['NOT_ENABLED'],
    async handle(call) {
      await countAct(call, 'release')
      return { released: await releaseOwn(call, call.params.id, call.body.ref) }
    },
  },
})
