/**
 * Performs the steps of a task with the mouse or with the keyboard alone, and counts the clicks and key presses that the page
 * receives. The keys Control, Shift, Alt and Meta count together with the key that follows.
 */

import type { BrowserContext, Locator, Page } from 'playwright-core'

export interface Effort {
  clicks: number
  keys: number
}

/** Runs in the page, and counts only trusted events, which come from a device and not from a script. */
const LISTENERS = `
  addEventListener('pointerdown', (event) => event.isTrusted && countInput('clicks'), true)
  addEventListener('keydown', (event) => {
    if (event.isTrusted && !['Control', 'Shift', 'Alt', 'Meta'].includes(event.key)) countInput('keys')
  }, true)`

/** Counts the input of all pages of a context. */
export async function countInput(context: BrowserContext): Promise<Effort> {
  const effort = { clicks: 0, keys: 0 }
  await context.exposeBinding('countInput', (_source, kind: keyof Effort) => void effort[kind]++)
  await context.addInitScript(LISTENERS)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  return effort
}

/**
 * Is true unless a window has opened and does not have the focus yet. A press of Tab just before would begin at the second part of a date.
 */
const SETTLED = `(() => {
  const window = document.querySelector('[role=dialog][aria-modal=true]')
  return window === null || window.contains(document.activeElement)
})()`

const SETTLE_MS = 20

/** The maximum number of presses of one key in a step. */
const MOST_PRESSES = 120

export interface Hands {
  /** Opens a section of the console. */
  go: (section: string) => Promise<void>
  /** Pastes a text into the search, and opens one of the offered options. */
  find: (text: string, offer: string | RegExp) => Promise<void>
  /** Presses a button or follows a link. */
  press: (target: Locator) => Promise<void>
  /** Chooses an action from the menu of the other actions of a page. */
  act: (action: string) => Promise<void>
  /** Chooses an item from the menu that a button opens. */
  pick: (menu: Locator, item: string) => Promise<void>
  /** Selects one of a few alternatives that are always visible. */
  select: (label: string) => Promise<void>
  /** Replaces the text of a field by typing. */
  write: (field: Locator, text: string) => Promise<void>
  /** Types into a field with a list, and chooses an option. */
  choose: (field: Locator, typed: string, option: string | RegExp) => Promise<void>
}

async function paste(page: Page, text: string): Promise<void> {
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`)
  await page.keyboard.press('Control+v')
}

const offered = (page: Page, name: string | RegExp): Locator =>
  page.getByRole('option', { name, exact: typeof name === 'string' }).first()

const OTHER_ACTIONS = 'More actions'
const menuItem = (page: Page, name: string): Locator => page.getByRole('menuitem', { name, exact: true })

/** Replaces the text of the focused field by typing. */
async function retype(field: Locator, text: string): Promise<void> {
  if ((await field.inputValue()) !== '') await field.press('Control+a')
  await field.pressSequentially(text)
}

export function mouse(page: Page): Hands {
  const click = (target: Locator) => target.click()
  const pick: Hands['pick'] = async (menu, item) => {
    await click(menu)
    await click(menuItem(page, item))
  }
  return {
    go: (section) => click(page.getByRole('navigation').getByRole('link', { name: section, exact: true })),
    find: async (text, offer) => {
      await click(page.getByRole('button', { name: /^Search or jump to/ }))
      await paste(page, text)
      await click(offered(page, offer))
    },
    press: click,
    pick,
    act: (action) => pick(page.getByRole('button', { name: OTHER_ACTIONS }), action),
    select: (label) => click(page.getByText(label, { exact: true })),
    write: async (field, text) => {
      await click(field)
      await retype(field, text)
    },
    choose: async (field, typed, option) => {
      await click(field)
      if (typed !== '') await retype(field, typed)
      await click(offered(page, option))
    },
  }
}

export function keyboard(page: Page): Hands {
  /** Presses a key until the condition holds. */
  const until = async (key: string, holds: () => Promise<boolean>) => {
    for (let presses = 0; !(await holds()); presses++) {
      if (presses === MOST_PRESSES) throw new Error(`${MOST_PRESSES} presses of ${key} did not lead to the target`)
      await page.keyboard.press(key)
    }
  }
  const isFocused = async (target: Locator) => (await target.and(page.locator(':focus')).count()) > 0
  const focus = async (target: Locator) => {
    await target.waitFor()
    // The policy of the page forbids `waitForFunction`, which evaluates text in the page after the first attempt.
    while (!(await page.evaluate<boolean>(SETTLED))) await page.waitForTimeout(SETTLE_MS)
    await until('Tab', () => isFocused(target))
  }
  const accept = async (option: Locator, isChosen: () => Promise<boolean>) => {
    await option.waitFor()
    await until('ArrowDown', isChosen)
    await page.keyboard.press('Enter')
  }
  const find: Hands['find'] = async (text, offer) => {
    await page.keyboard.press('Control+k')
    await page
      .getByRole('combobox', { name: /^Paste/ })
      .and(page.locator(':focus'))
      .waitFor()
    await paste(page, text)
    // The results from the server are listed before the commands, so their arrival moves the options.
    await page.getByRole('dialog').locator('.mantine-Loader-root').waitFor({ state: 'detached' })
    const option = offered(page, offer)
    await accept(option, async () => (await option.getAttribute('aria-selected')) === 'true')
  }
  const pick: Hands['pick'] = async (menu, item) => {
    await focus(menu)
    await page.keyboard.press('Enter')
    await accept(menuItem(page, item), () => isFocused(menuItem(page, item)))
  }
  return {
    go: (section) => find(section, section),
    find,
    pick,
    act: (action) => pick(page.getByRole('button', { name: OTHER_ACTIONS }), action),
    press: async (target) => {
      await focus(target)
      await page.keyboard.press('Enter')
    },
    select: async (label) => {
      const radio = page.getByRole('radio', { name: label, exact: true })
      const name = await radio.getAttribute('name')
      await until('Tab', () => isFocused(page.locator(`input[name="${name}"]`)))
      await until('ArrowRight', () => radio.isChecked())
    },
    write: async (field, text) => {
      await focus(field)
      await retype(field, text)
    },
    choose: async (field, typed, option) => {
      await focus(field)
      if (typed === '') await page.keyboard.press('ArrowDown')
      else await retype(field, typed)
      const wanted = offered(page, option)
      await accept(wanted, async () => (await wanted.getAttribute('data-combobox-selected')) === 'true')
    },
  }
}
