/** The frame of every screen: the sections at the left, and the search and the caller at the top. */

import { type Me, sessions } from '@keyward/contract/management/sign-in'
import {
  ActionIcon,
  Anchor,
  AppShell,
  Burger,
  Button,
  Group,
  Kbd,
  Loader,
  Menu,
  NavLink,
  Text,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core'
import { useDisclosure, useHotkeys } from '@mantine/hooks'
import { IconMoon, IconSearch, IconSun, IconUser } from '@tabler/icons-react'
import { Suspense } from 'react'
import { Link, useLocation } from 'wouter'

import { call } from '../api/client.ts'
import { forgetRecent } from '../api/recent.ts'
import { useRunningWork } from '../api/work.ts'
import { Waiting } from '../parts/parts.tsx'
import { text } from '../text.ts'
import { Pages } from './pages.tsx'
import { Palette } from './palette.tsx'
import { type Section, sectionsOf } from './sections.ts'

const FIND_KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ K' : 'Ctrl K'

/** Shows the progress of a task that continues in the background, as a link to its screen. */
function RunningWork() {
  const work = useRunningWork()
  if (!work) return null
  return (
    <Button component={Link} href={work.path} variant="light" size="compact-sm" leftSection={<Loader size={12} />}>
      {Math.floor((100 * work.done) / Math.max(1, work.all))} %
    </Button>
  )
}

function ThemeButton() {
  const { setColorScheme } = useMantineColorScheme()
  const isDark = useComputedColorScheme('light') === 'dark'
  const label = isDark ? text.nav.light : text.nav.dark
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={label}
      onClick={() => setColorScheme(isDark ? 'light' : 'dark')}
    >
      {isDark ? <IconSun size={18} /> : <IconMoon size={18} />}
    </ActionIcon>
  )
}

function CallerMenu({ me }: { me: Me }) {
  const [, navigate] = useLocation()
  const signOut = async () => {
    await call(sessions.signOut, {}).catch(() => undefined)
    forgetRecent()
    // Loading the page again removes all data of the former caller from memory.
    window.location.assign('/console')
  }
  const name = me.member?.email ?? me.kind.toLowerCase()
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="subtle" color="gray" leftSection={<IconUser size={16} />} aria-label={name}>
          <Text size="sm" visibleFrom="sm">
            {name}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {me.organization && <Menu.Label>{me.organization.name}</Menu.Label>}
        <Menu.Item onClick={() => navigate('/account')}>{text.nav.account}</Menu.Item>
        <Menu.Item onClick={() => void signOut()}>{text.nav.signOut}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

function Navigation({ sections, onNavigate }: { sections: readonly Section[]; onNavigate: () => void }) {
  const [location] = useLocation()
  return (
    <nav aria-label={text.nav.label}>
      {sections.map(({ path, label, icon: Icon }) => (
        <NavLink
          key={path}
          component={Link}
          href={path}
          label={label}
          leftSection={<Icon size={18} stroke={1.7} />}
          active={path === '/' ? location === '/' : location.startsWith(path)}
          {...((path === '/' ? location === '/' : location.startsWith(path)) && { 'aria-current': 'page' as const })}
          onClick={onNavigate}
        />
      ))}
    </nav>
  )
}

export function Shell({ me }: { me: Me }) {
  const [isMenuOpen, menu] = useDisclosure(false)
  const [isFinding, finding] = useDisclosure(false)
  useHotkeys([['mod+K', finding.open]], [])
  const sections = sectionsOf(me)
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: !isMenuOpen } }}
      padding="lg"
    >
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isMenuOpen} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label={text.nav.open} />
            <Anchor component={Link} href="/" underline="never" c="inherit" fw={700}>
              {text.name}
            </Anchor>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <RunningWork />
            <Button
              variant="default"
              leftSection={<IconSearch size={16} />}
              rightSection={<Kbd size="xs">{FIND_KEYS}</Kbd>}
              onClick={finding.open}
              visibleFrom="sm"
            >
              {text.nav.find}
            </Button>
            <ActionIcon
              variant="subtle"
              color="gray"
              size="lg"
              hiddenFrom="sm"
              aria-label={text.nav.find}
              onClick={finding.open}
            >
              <IconSearch size={18} />
            </ActionIcon>
            <ThemeButton />
            <CallerMenu me={me} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs">
        <Navigation sections={sections} onNavigate={menu.close} />
      </AppShell.Navbar>
      <AppShell.Main id="content">
        <Suspense fallback={<Waiting />}>
          <Pages me={me} home={sections[0]?.path ?? '/account'} />
        </Suspense>
      </AppShell.Main>
      {isFinding && <Palette onClose={finding.close} sections={sections} me={me} />}
    </AppShell>
  )
}
