/**
 * The screens of the console with their paths. Each screen has a separate script, which is loaded when the screen opens or the browser is
 * idle.
 */

import { type ComponentType, lazy, useEffect, useState } from 'react'
import { Redirect, Route, Switch, useParams } from 'wouter'

import { Screen } from '../parts/page-header.tsx'

/** A screen about one resource receives the id of the resource from its path. */
type ScreenComponent = ComponentType<{ id: string }>

/** Functions that load the scripts of the screens. */
const loads: (() => Promise<unknown>)[] = []

/** Returns the component of a screen. React shows it at once if its script is loaded. Otherwise React shows a fallback for at least 300 ms. */
function screen(load: () => Promise<{ default: ScreenComponent }>): ScreenComponent {
  let loaded: ScreenComponent | null = null
  const loadOnce = async () => {
    const script = await load()
    loaded = script.default
    return script
  }
  loads.push(loadOnce)
  const Lazy = lazy(loadOnce)
  return function LoadedScreen(props) {
    // The component does not change while the screen is shown, so that the screen keeps its state.
    const [Shown] = useState<ScreenComponent>(() => loaded ?? Lazy)
    return <Shown {...props} />
  }
}

const Overview = screen(() => import('../pages/overview.tsx'))

/** The first path that matches a location is its screen. */
const SCREENS: Readonly<Record<string, ScreenComponent>> = {
  '/licenses': screen(() => import('../pages/licenses/licenses.tsx')),
  '/licenses/new': screen(() => import('../pages/licenses/new-license.tsx')),
  '/licenses/import': screen(() => import('../pages/licenses/import-licenses.tsx')),
  '/licenses/:id': screen(() => import('../pages/licenses/license.tsx')),
  '/customers': screen(() => import('../pages/customers.tsx')),
  '/customers/:id': screen(() => import('../pages/customer.tsx')),
  '/customers/:id/merge': screen(() => import('../pages/merge.tsx')),
  '/products': screen(() => import('../pages/products/products.tsx')),
  '/products/:id': screen(() => import('../pages/products/product.tsx')),
  '/orders': screen(() => import('../pages/orders.tsx')),
  '/shops': screen(() => import('../pages/shops/shops.tsx')),
  '/shops/:id': screen(() => import('../pages/shops/connection.tsx')),
  '/mails': screen(() => import('../pages/mails.tsx')),
  '/templates/:id': screen(() => import('../pages/templates/template.tsx')),
  '/rules': screen(() => import('../pages/rules/rules.tsx')),
  '/rules/new': screen(() => import('../pages/rules/new-rule.tsx')),
  '/rules/import': screen(() => import('../pages/rules/import-rules.tsx')),
  '/rules/sets': screen(() => import('../pages/rules/sets.tsx')),
  '/rules/set': screen(() => import('../pages/rules/set.tsx')),
  '/rules/set/replace': screen(() => import('../pages/rules/replace-set.tsx')),
  '/why': screen(() => import('../pages/why/why.tsx')),
  '/alerts': screen(() => import('../pages/alerts.tsx')),
  '/activity': screen(() => import('../pages/activity.tsx')),
  '/audit': screen(() => import('../pages/audit.tsx')),
  '/settings': screen(() => import('../pages/settings.tsx')),
  '/team': screen(() => import('../pages/team.tsx')),
  '/credentials': screen(() => import('../pages/credentials.tsx')),
  '/integrate': screen(() => import('../pages/integrate/integrate.tsx')),
  '/webhooks': screen(() => import('../pages/webhooks/webhooks.tsx')),
  '/webhooks/events': screen(() => import('../pages/webhooks/events.tsx')),
  '/webhooks/:id': screen(() => import('../pages/webhooks/endpoint.tsx')),
  '/account': screen(() => import('../pages/account.tsx')),
  '/organizations': screen(() => import('../pages/organizations.tsx')),
  '/validators': screen(() => import('../pages/validators.tsx')),
}

/** The time after which a script is loaded even if the browser is not idle. */
const IDLE_MS = 2_000

/** Loads the scripts of all screens one after the other while the browser is idle, so that screens appear without a wait. */
async function loadAll(): Promise<void> {
  // Safari has no `requestIdleCallback`.
  const idle = () =>
    new Promise<void>((resolve) => {
      if ('requestIdleCallback' in window) window.requestIdleCallback(() => resolve(), { timeout: IDLE_MS })
      else setTimeout(resolve, IDLE_MS / 10)
    })
  for (const load of loads.splice(0)) {
    await idle()
    await load()
  }
}

/** Shows a screen with the id in its path. Another id is another screen, with a state of its own. */
function Routed({ screen: Shown }: { screen: ScreenComponent }) {
  const { id = '' } = useParams<{ id?: string }>()
  return <Shown key={id} id={id} />
}

/** The routes of the console. `home` is the first section that the caller may see. */
export function Pages({ home }: { home: string }) {
  useEffect(() => {
    // A script that cannot be loaded now is loaded when its screen opens.
    void loadAll().catch(() => undefined)
  }, [])
  return (
    <Switch>
      <Route path="/">{home === '/' ? <Overview id="" /> : <Redirect to={home} replace />}</Route>
      <Route path="/invitation">
        <Redirect to="/account" replace />
      </Route>
      <Route path="/sign-in">
        <Redirect to={home} replace />
      </Route>
      {Object.entries(SCREENS).map(([path, Shown]) => (
        <Route key={path} path={path}>
          <Routed screen={Shown} />
        </Route>
      ))}
      <Route>
        <Screen title="This page does not exist.">{null}</Screen>
      </Route>
    </Switch>
  )
}
