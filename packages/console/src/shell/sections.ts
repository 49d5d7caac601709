import type { Permission } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import {
  type Icon,
  IconActivity,
  IconBell,
  IconBox,
  IconBuilding,
  IconCode,
  IconHistory,
  IconKey,
  IconLayoutDashboard,
  IconLicense,
  IconListDetails,
  IconReceipt,
  IconServer,
  IconShield,
  IconUsers,
  IconUsersGroup,
  IconWebhook,
  IconZoomQuestion,
} from '@tabler/icons-react'

import { text } from '../text.ts'

export interface Section {
  path: string
  label: string
  icon: Icon
}

interface SectionGroup {
  /** An empty title belongs to the sections above all groups. */
  title: string
  sections: readonly Section[]
}

const { nav } = text

const OF_OPERATOR: readonly SectionGroup[] = [
  {
    title: '',
    sections: [
      { path: '/organizations', label: nav.organizations, icon: IconBuilding },
      { path: '/validators', label: nav.validators, icon: IconServer },
    ],
  },
]

const OF_VENDORS: readonly { title: string; sections: readonly (Section & { needs: Permission })[] }[] = [
  {
    title: '',
    sections: [{ path: '/', label: nav.overview, icon: IconLayoutDashboard, needs: 'analytics.read' }],
  },
  {
    title: nav.groups.sell,
    sections: [
      { path: '/licenses', label: nav.licenses, icon: IconLicense, needs: 'licenses.read' },
      { path: '/customers', label: nav.customers, icon: IconUsers, needs: 'customers.read' },
      { path: '/products', label: nav.products, icon: IconBox, needs: 'products.read' },
      { path: '/orders', label: nav.orders, icon: IconReceipt, needs: 'orders.read' },
    ],
  },
  {
    title: nav.groups.protect,
    sections: [
      { path: '/rules', label: nav.rules, icon: IconShield, needs: 'licenses.read' },
      { path: '/why', label: nav.why, icon: IconZoomQuestion, needs: 'licenses.read' },
      { path: '/alerts', label: nav.alerts, icon: IconBell, needs: 'licenses.read' },
    ],
  },
  {
    title: nav.groups.build,
    sections: [
      { path: '/integrate', label: nav.integrate, icon: IconCode, needs: 'products.read' },
      { path: '/credentials', label: nav.credentials, icon: IconKey, needs: 'credentials.write' },
      { path: '/webhooks', label: nav.webhooks, icon: IconWebhook, needs: 'webhooks.read' },
    ],
  },
  {
    title: nav.groups.logs,
    sections: [
      { path: '/activity', label: nav.activity, icon: IconActivity, needs: 'licenses.read' },
      { path: '/audit', label: nav.audit, icon: IconHistory, needs: 'audit.read' },
      { path: '/webhooks/events', label: nav.events, icon: IconListDetails, needs: 'webhooks.read' },
    ],
  },
  {
    title: nav.groups.organization,
    sections: [{ path: '/team', label: nav.team, icon: IconUsersGroup, needs: 'credentials.write' }],
  },
]

/** Returns the groups that contain a section for the caller. */
export function groupsOf(me: Me): readonly SectionGroup[] {
  if (me.kind === 'OPERATOR') return OF_OPERATOR
  return OF_VENDORS.map(({ title, sections }) => ({
    title,
    sections: sections.filter(({ needs }) => me.permissions.includes(needs)),
  })).filter(({ sections }) => sections.length > 0)
}

export function sectionsOf(me: Me): readonly Section[] {
  return groupsOf(me).flatMap(({ sections }) => sections)
}

/** Returns the path of the section to which a location belongs: the longest path with which the location begins. */
export function currentSection(location: string, sections: readonly Section[]): string | undefined {
  if (location === '/') return '/'
  return sections
    .map(({ path }) => path)
    .filter((path) => path !== '/' && (location === path || location.startsWith(`${path}/`)))
    .toSorted((a, b) => b.length - a.length)[0]
}
