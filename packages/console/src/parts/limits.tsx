import { type organizations, quotaName } from '@keyward/contract'
import type { ResultOf } from '@keyward/contract/operations'
import { Progress } from '@mantine/core'

type Organization = ResultOf<typeof organizations.readOwnOrganization>
type Quota = keyof Organization['quotas']

/** The shown quotas. The plan limits access rules too, and `machinesPerLicense` has no single use. */
const NAMES: Readonly<Record<Quota, string | null>> = {
  accessRules: null,
  machinesPerLicense: null,
  licenses: 'Licenses',
  customers: 'Customers',
  products: 'Products',
  members: 'Members',
  apiKeys: 'API keys',
  tokens: 'Tokens',
  ruleSets: 'Sets of access rules',
  webhookEndpoints: 'Webhook endpoints',
  portalSessions: 'Portal links and sessions',
  signingKeys: 'Signing keys',
  machines: 'Machines',
  storedBytes: 'Stored bytes',
  bytesPerDay: 'Bytes of changes today',
}

interface Limit {
  name: string
  used: number
  limit: number
}

/** Returns the limits of an organization with their use, without those that have no limit. */
export function limitsOf({ usage, quotas }: Organization): Limit[] {
  const all = [
    { name: 'Access rules', used: usage.rules.used, limit: usage.rules.limit },
    ...quotaName.options.map((quota) => {
      const { used, limit } = quotas[quota]
      return { name: NAMES[quota], used, limit }
    }),
  ]
  return all.flatMap(({ name, used, limit }) =>
    name === null || limit === null ? [] : [{ name, used: used ?? 0, limit }],
  )
}

export function LimitBars({ limits }: { limits: readonly Limit[] }) {
  return (
    <ul className="limits">
      {limits.map(({ name, used, limit }) => (
        <li key={name}>
          <span>{name}</span>
          <span className="dimmed">{`${used.toLocaleString()} of ${limit.toLocaleString()} used`}</span>
          <Progress
            value={(100 * used) / Math.max(1, limit)}
            aria-label={name}
            color={used >= limit ? 'red' : 'indigo'}
          />
        </li>
      ))}
    </ul>
  )
}
