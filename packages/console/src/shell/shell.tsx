/** The frame of every screen: the sections at the side, or at the lower edge of a phone. */

import type { Me } from '@keyward/contract/management/sign-in'
import { Drawer } from '@mantine/core'
import { useDisclosure, useHotkeys } from '@mantine/hooks'
import { IconMenu2, IconSearch } from '@tabler/icons-react'
import { Suspense } from 'react'
import { Link, useLocation } from 'wouter'

import { SignedIn } from '../api/me.ts'
import { Announcer } from '../parts/page-header.tsx'
import { LoadingPage } from '../parts/states.tsx'
import { useOpenAlerts } from './open-alerts.ts'
import { Pages } from './pages.tsx'
import { Palette } from './palette.tsx'
import { Rail } from './rail.tsx'
import { currentSection, sectionsOf } from './sections.ts'
/** The sections in the bottom bar of a phone, in order. The search is between them. */
const ON_PHONES = new Set(['/', '/licenses', '/why', '/organizations', '/validators'])

/** The sections that a phone shows at its lower edge. The rail contains all sections. */
function BottomBar({ me, onFind, onMore }: { me: Me; onFind: () => void; onMore: () => void }) {
  const [location] = useLocation()
  const all = sectionsOf(me)
  const current = currentSection(location, all)
  const links = all
    .filter(({ path }) => ON_PHONES.has(path))
    .map(({ path, label, icon: Icon }) => (
      <Link key={path} href={path} className="bottom-item" aria-current={path === current ? 'page' : undefined}>
        <Icon size={20} stroke={1.75} aria-hidden="true" />
        {label}
      </Link>
    ))
  const hasAlerts = useOpenAlerts(me) !== ''
  return (
    <nav className="bottom-bar" aria-label="Main sections">
      {links.slice(0, 2)}
      <button type="button" className="bottom-item" onClick={onFind}>
        <IconSearch size={20} stroke={1.75} aria-hidden="true" />
        Search
      </button>
      {links.slice(2)}
      <button type="button" className="bottom-item" onClick={onMore}>
        <IconMenu2 size={20} stroke={1.75} aria-hidden="true" />
        More
        {hasAlerts && <span className="pip" />}
      </button>
    </nav>
  )
}

export function Shell({ me }: { me: Me }) {
  const [isMenuOpen, menu] = useDisclosure(false)
  const [isFinding, finding] = useDisclosure(false)
  useHotkeys([['mod+K', finding.open]], [])
  const sections = sectionsOf(me)
  const find = () => {
    menu.close()
    finding.open()
  }
  return (
    <SignedIn value={me}>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <Announcer />
      <div className="shell">
        <Rail me={me} onFind={find} />
        <main className="main" id="content" tabIndex={-1}>
          <Suspense fallback={<LoadingPage />}>
            <Pages home={sections[0]?.path ?? '/account'} />
          </Suspense>
        </main>
        <BottomBar me={me} onFind={find} onMore={menu.open} />
      </div>
      {isMenuOpen && (
        <Drawer
          opened
          onClose={menu.close}
          size={280}
          padding={0}
          withCloseButton={false}
          attributes={{ content: { 'aria-label': 'Sections' } }}
        >
          <Rail me={me} onFind={find} onNavigate={menu.close} />
        </Drawer>
      )}
      {isFinding && <Palette onClose={finding.close} sections={sections} me={me} />}
    </SignedIn>
  )
}
