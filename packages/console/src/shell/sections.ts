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
  IconMail,
  IconReceipt,
  IconServer,
  IconSettings,
  IconShield,
  IconShoppingBag,
  IconUsers,
  IconUsersGroup,
  IconWebhook,
  IconZoomQuestion,
} from '@tabler/icons-react'

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

const OF_OPERATOR: readonly SectionGroup[] = [
  {
    title: '',
    sections: [
      { path: '/organizations', label: 'Organizations', icon: IconBuilding },
      { path: '/validators', label: 'Health', icon: IconServer },
    ],
  },
]

const OF_VENDORS: readonly { title: string; sections: readonly (Section & { needs: Permission })[] }[] = [
  {
    title: '',
    sections: [{ path: '/', label: 'Overview', icon: IconLayoutDashboard, needs: 'analytics.read' }],
  },
  {
    title: 'Sell',
    sections: [
      { path: '/licenses', label: 'Licenses', icon: IconLicense, needs: 'licenses.read' },
      { path: '/customers', label: 'Customers', icon: IconUsers, needs: 'customers.read' },
      { path: '/products', label: 'Products', icon: IconBox, needs: 'products.read' },
      { path: '/orders', label: 'Orders', icon: IconReceipt, needs: 'orders.read' },
      { path: '/shops', label: 'Shops', icon: IconShoppingBag, needs: 'orders.read' },
      { path: '/mails', label: 'Mails', icon: IconMail, needs: 'customers.read' },
    ],
  },
  {
    title: 'Protect',
    sections: [
      { path: '/rules', label: 'Access rules', icon: IconShield, needs: 'licenses.read' },
      { path: '/why', label: 'Check', icon: IconZoomQuestion, needs: 'licenses.read' },
      { path: '/alerts', label: 'Alerts', icon: IconBell, needs: 'licenses.read' },
    ],
  },
  {
    title: 'Build',
    sections: [
      { path: '/integrate', label: 'Integrate', icon: IconCode, needs: 'products.read' },
      { path: '/credentials', label: 'API keys', icon: IconKey, needs: 'credentials.write' },
      { path: '/webhooks', label: 'Webhooks', icon: IconWebhook, needs: 'webhooks.read' },
    ],
  },
  {
    title: 'Logs',
    sections: [
      { path: '/activity', label: 'Activity', icon: IconActivity, needs: 'licenses.read' },
      { path: '/audit', label: 'Changes', icon: IconHistory, needs: 'audit.read' },
      { path: '/webhooks/events', label: 'Events', icon: IconListDetails, needs: 'webhooks.read' },
    ],
  },
  {
    title: 'Organization',
    sections: [
      { path: '/team', label: 'Team', icon: IconUsersGroup, needs: 'credentials.write' },
      { path: '/settings', label: 'Settings', icon: IconSettings, needs: 'analytics.read' },
    ],
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
