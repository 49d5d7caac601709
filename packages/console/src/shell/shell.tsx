/** The frame of every screen: the sections at the left, search and the caller at the top. */

import type { Me } from '@keyward/contract/management/sign-in'
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
import { lazy, Suspense } from 'react'
import { Link, Redirect, Route, Switch, useLocation } from 'wouter'

import { callWithoutResponse } from '../api/client.ts'
import { forgetRecent } from '../api/recent.ts'
import { useRunningWork } from '../api/work.ts'
import { Screen, Waiting } from '../parts/parts.tsx'
import { text } from '../text.ts'
import { Palette } from './palette.tsx'
import { type Section, sectionsOf } from './sections.ts'

const Overview = lazy(() => import('../pages/overview.tsx'))
const Licenses = lazy(() => import('../pages/licenses/licenses.tsx'))
const NewLicense = lazy(() => import('../pages/licenses/new-license.tsx'))
const ImportLicenses = lazy(() => import('../pages/licenses/import-licenses.tsx'))
const License = lazy(() => import('../pages/licenses/license.tsx'))
const Customers = lazy(() => import('../pages/customers.tsx'))
const Customer = lazy(() => import('../pages/customer.tsx'))
const Merge = lazy(() => import('../pages/merge.tsx'))
const Products = lazy(() => import('../pages/products.tsx'))
const Rules = lazy(() => import('../pages/rules/rules.tsx'))
const NewRule = lazy(() => import('../pages/rules/new-rule.tsx'))
const ImportRules = lazy(() => import('../pages/rules/import-rules.tsx'))
const RuleSets = lazy(() => import('../pages/rules/sets.tsx'))
const RuleSet = lazy(() => import('../pages/rules/set.tsx'))
const ReplaceRuleSet = lazy(() => import('../pages/rules/replace-set.tsx'))
const Why = lazy(() => import('../pages/why/why.tsx'))
const Alerts = lazy(() => import('../pages/alerts.tsx'))
const Activity = lazy(() => import('../pages/activity.tsx'))
const Audit = lazy(() => import('../pages/audit.tsx'))
const Team = lazy(() => import('../pages/team.tsx'))
const Credentials = lazy(() => import('../pages/credentials.tsx'))
const Integrate = lazy(() => import('../pages/integrate/integrate.tsx'))
const Webhooks = lazy(() => import('../pages/webhooks/webhooks.tsx'))
const WebhookEndpoint = lazy(() => import('../pages/webhooks/endpoint.tsx'))
const Events = lazy(() => import('../pages/webhooks/events.tsx'))
const Account = lazy(() => import('../pages/account.tsx'))
const Organizations = lazy(() => import('../pages/organizations.tsx'))
const Validators = lazy(() => import('../pages/validators.tsx'))

const FIND_KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ K' : 'Ctrl K'

/** Shows the progress of work that continues in the background, as a link to its screen. */
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
    await callWithoutResponse({ method: 'DELETE', path: '/sessions/current' }).catch(() => undefined)
    forgetRecent()
    // Loading the page again removes everything that it has read.
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

/** The routes of the console. `home` is the first section that the caller may see. */
function Pages({ me, home }: { me: Me; home: string }) {
  return (
    <Switch>
      <Route path="/">{home === '/' ? <Overview me={me} /> : <Redirect to={home} replace />}</Route>
      <Route path="/invitation">
        <Redirect to="/account" replace />
      </Route>
      <Route path="/sign-in">
        <Redirect to={home} replace />
      </Route>
      <Route path="/licenses">
        <Licenses me={me} />
      </Route>
      <Route path="/licenses/new" component={NewLicense} />
      <Route path="/licenses/import" component={ImportLicenses} />
      <Route path="/licenses/:id">{({ id }) => <License key={id} id={id} me={me} />}</Route>
      <Route path="/customers" component={Customers} />
      <Route path="/customers/:id">{({ id }) => <Customer key={id} id={id} />}</Route>
      <Route path="/customers/:id/merge">{({ id }) => <Merge id={id} />}</Route>
      <Route path="/products">
        <Products me={me} />
      </Route>
      <Route path="/rules">
        <Rules me={me} />
      </Route>
      <Route path="/rules/new" component={NewRule} />
      <Route path="/rules/import" component={ImportRules} />
      <Route path="/rules/sets">
        <RuleSets me={me} />
      </Route>
      <Route path="/rules/set">
        <RuleSet me={me} />
      </Route>
      <Route path="/rules/set/replace" component={ReplaceRuleSet} />
      <Route path="/why">
        <Why me={me} />
      </Route>
      <Route path="/alerts" component={Alerts} />
      <Route path="/activity" component={Activity} />
      <Route path="/audit" component={Audit} />
      <Route path="/team">
        <Team me={me} />
      </Route>
      <Route path="/credentials">
        <Credentials me={me} />
      </Route>
      <Route path="/integrate">
        <Integrate me={me} />
      </Route>
      <Route path="/webhooks">
        <Webhooks me={me} />
      </Route>
      <Route path="/webhooks/events" component={Events} />
      <Route path="/webhooks/:id">{({ id }) => <WebhookEndpoint key={id} id={id} me={me} />}</Route>
      <Route path="/account">
        <Account me={me} />
      </Route>
      <Route path="/organizations" component={Organizations} />
      <Route path="/validators" component={Validators} />
      <Route>
        <Screen title={text.notFound}>{null}</Screen>
      </Route>
    </Switch>
  )
}
