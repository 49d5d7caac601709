import type { Permission } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import {
  type Icon,
  IconActivity,
  IconAlertTriangle,
  IconBox,
  IconBuilding,
  IconCode,
  IconHelpCircle,
  IconHome,
  IconKey,
  IconLicense,
  IconListDetails,
  IconServer,
  IconShield,
  IconUsers,
  IconUsersGroup,
  IconWebhook,
} from '@tabler/icons-react'

import { text } from '../text.ts'

export interface Section {
  path: string
  label: string
  icon: Icon
}

const { nav } = text

const OF_OPERATOR: readonly Section[] = [
  { path: '/organizations', label: nav.organizations, icon: IconBuilding },
  { path: '/validators', label: nav.validators, icon: IconServer },
]

const OF_VENDORS: readonly (Section & { needs: Permission })[] = [
  { path: '/', label: nav.overview, icon: IconHome, needs: 'analytics.read' },
  { path: '/licenses', label: nav.licenses, icon: IconLicense, needs: 'licenses.read' },
  { path: '/customers', label: nav.customers, icon: IconUsers, needs: 'customers.read' },
  { path: '/products', label: nav.products, icon: IconBox, needs: 'products.read' },
  { path: '/rules', label: nav.rules, icon: IconShield, needs: 'licenses.read' },
  { path: '/why', label: nav.why, icon: IconHelpCircle, needs: 'licenses.read' },
  { path: '/alerts', label: nav.alerts, icon: IconAlertTriangle, needs: 'licenses.read' },
  { path: '/activity', label: nav.activity, icon: IconActivity, needs: 'licenses.read' },
  { path: '/audit', label: nav.audit, icon: IconListDetails, needs: 'audit.read' },
  { path: '/integrate', label: nav.integrate, icon: IconCode, needs: 'products.read' },
  { path: '/webhooks', label: nav.webhooks, icon: IconWebhook, needs: 'webhooks.read' },
  { path: '/team', label: nav.team, icon: IconUsersGroup, needs: 'credentials.write' },
  { path: '/credentials', label: nav.credentials, icon: IconKey, needs: 'credentials.write' },
]

export function sectionsOf(me: Me): readonly Section[] {
  if (me.kind === 'OPERATOR') return OF_OPERATOR
  return OF_VENDORS.filter(({ needs }) => me.permissions.includes(needs))
}
