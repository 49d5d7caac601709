import type { organizations } from '@keyward/contract'
import type { ResultOf } from '@keyward/contract/operations'
import { Progress } from '@mantine/core'

type Organization = ResultOf<typeof organizations.readOwnOrganization>
type Quota = keyof Organization['quotas']

const NAMES: Readonly<Partial<Record<Quota, string>>> = {
  licenses: 'Licenses',
  customers: 'Customers',
  products: 'Products',
  members: 'Members',
  apiKeys: 'API keys',
  tokens: 'Tokens',
  ruleSets: 'Sets of access rules',
  webhookEndpoints: 'Webhook endpoints',
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
    ...Object.entries(NAMES).flatMap(([quota, name]) => {
      const { used = null, limit = null } = Object.entries(quotas).find(([key]) => key === quota)?.[1] ?? {}
      return [{ name, used: used ?? 0, limit }]
    }),
  ]
  return all.flatMap(({ name, used, limit }) => (limit === null ? [] : [{ name, used, limit }]))
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
