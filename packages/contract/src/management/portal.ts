/** The portal: the page on which a customer sees its licenses and frees slots, by a link of the vendor (docs/api.md#u3). */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXAMPLE_ID, id, listQuery, newEmail, page, timestamp } from './common.ts'
import { licenseFile, newMachineFile } from './license-files.ts'
import { license } from './licenses.ts'
import { licenseMachines } from './machines.ts'
import { operations } from './operations.ts'

const portalAction = z.enum(['release', 'files']).meta({
  description: '`release` frees the slot of a machine, and `files` issues the file of a machine without a network.',
  example: 'release',
})
export type PortalAction = z.infer<typeof portalAction>
const portalActions = z.array(portalAction).meta({
  description: 'The actions that the customer may take.',
  example: ['release'],
})

const MAX_RETURN_URL = 2_000
const LOOPBACK = /^http:\/\/(?:localhost|127\.0\.0\.1)(?:[:/]|$)/

/** Returns whether a browser may follow the link: `javascript:` and unencrypted pages are excluded. */
function isReturnUrl(value: string): boolean {
  const url = URL.parse(value)
  return url !== null && url.username === '' && (url.protocol === 'https:' || LOOPBACK.test(value))
}

const createPortalSession = z
  .strictObject({
    customerId: id('The id of the customer.'),
    actions: portalActions
      .max(8)
      .transform((list) => [...new Set(list)])
      .meta({ description: 'The actions that the customer may take. Without any, the customer only reads.' }),
    returnUrl: text(MAX_RETURN_URL)
      .refine(isReturnUrl, 'must be an https URL, or an http URL of localhost')
      .optional()
      .meta({
        description: 'The page of the vendor to which the portal links back.',
        example: 'https://example.com/account',
      }),
    preview: z.boolean().optional().meta({
      description: 'Whether the link only shows the page as the customer sees it; default false.',
      example: false,
    }),
  })
  .meta({ example: { customerId: EXAMPLE_ID, actions: ['release'] } })

const portalLink = z
  .object({
    url: z.string().optional().meta({
      description: 'The link, which opens the portal once. It is shown once, and a replayed response omits it.',
      example: 'https://keyward.example.com/portal#kwl_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
    expiresAt: timestamp('The time until which the link can be opened.'),
  })
  .meta({ id: 'PortalLink', description: 'A link to the portal for one customer.' })
export type PortalLink = z.infer<typeof portalLink>

const portalSession = z
  .object({
    vendor: z
      .object({
        name: z.string().meta({ description: 'The name of the vendor.', example: 'Acme Software' }),
        accentColor: z
          .string()
          .nullable()
          .meta({ description: 'The color of the vendor; null for that of Keyward.', example: '#1d4ed8' }),
      })
      .meta({ description: 'The vendor.' }),
    email: z.string().meta({ description: 'The e-mail address of the customer.', example: 'ada@example.com' }),
    actions: portalActions,
    preview: z.boolean().meta({ description: 'Whether the session changes nothing.', example: false }),
    returnUrl: z
      .string()
      .nullable()
      .meta({ description: 'The page of the vendor to link back to.', example: 'https://example.com/account' }),
    expiresAt: timestamp('The end of the session.'),
  })
  .meta({ id: 'PortalSession', description: 'The session of a customer in the portal.' })
export type PortalSession = z.infer<typeof portalSession>

const { used, max, releasesLeft, machines } = licenseMachines.shape
const { status, policy, graceEndsAt } = license.shape
const portalLicense = z
  .object({
    id: license.shape.id,
    productName: z.string().meta({ description: 'The name of the product.', example: 'Studio' }),
    status,
    type: policy.shape.type,
    expiresAt: policy.shape.expiresAt,
    durationDays: policy.shape.durationDays,
    graceEndsAt,
    used,
    max,
    releasesLeft,
    machines: z
      .array(
        machines.element.omit({ current: true }).extend({
          fileEndsAt: timestamp('The end of its file, until which it keeps its slot; null without one.').nullable(),
        }),
      )
      .meta({ description: machines.meta()?.description }),
    canRelease: z.boolean().meta({
      description: 'Whether the license lets the customer free slots now. Preview and actions are not considered.',
      example: true,
    }),
  })
  .meta({ id: 'PortalLicense', description: 'A license in the portal, without its key.' })
export type PortalLicense = z.infer<typeof portalLicense>

/** The operations of vendors. */
export const portalSessions = operations({
  createPortalSession: {
    route: 'POST /portal-sessions',
    needs: 'licenses.write',
    body: createPortalSession,
    returns: portalLink,
    creates: true,
    secrets: ['url'],
  },
  endPortalSessions: { route: 'DELETE /customers/{id}/portal-sessions', needs: 'licenses.write' },
})

/** The operations of the page. */
export const portal = operations({
  openPortalSession: {
    route: 'POST /portal/session',
    needs: 'nothing',
    body: z.strictObject({
      code: z.string().max(64).meta({
        description: 'The code in the fragment of the link. It works once.',
        example: 'kwl_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
      }),
    }),
    returns: portalSession,
  },
  requestPortalLink: {
    route: 'POST /portal/links',
    needs: 'nothing',
    body: z
      .strictObject({ organizationId: id('The id of the organization of the vendor.'), email: newEmail })
      .meta({ example: { organizationId: EXAMPLE_ID, email: 'ada@example.com' } }),
  },
  readPortalSession: { route: 'GET /portal/session', needs: 'portal', returns: portalSession },
  endPortalSession: { route: 'DELETE /portal/session', needs: 'portal' },
  listPortalLicenses: {
    route: 'GET /portal/licenses',
    needs: 'portal',
    query: listQuery({}),
    returns: page(portalLicense),
  },
  readPortalKey: {
    route: 'GET /portal/licenses/{id}/key',
    needs: 'portal',
    returns: z.object({ key: license.shape.key }),
  },
  releasePortalMachine: {
    route: 'POST /portal/licenses/{id}/release',
    needs: 'portal',
    body: z.strictObject({ ref: id('The `ref` of the machine.') }).meta({ example: { ref: EXAMPLE_ID } }),
    returns: z.object({ released: z.boolean().meta({ description: 'Whether the slot is free now.', example: true }) }),
  },
})

/** The operation of the page that issues files. */
export const portalFiles = operations({
  issuePortalFile: {
    route: 'POST /portal/licenses/{id}/file',
    needs: 'portal',
    body: newMachineFile.omit({ days: true }),
    returns: licenseFile,
    file: 'text/plain',
  },
})
