/** Themes the component library with the roles of styles/tokens.css. */

import {
  Alert,
  Badge,
  createTheme,
  type CSSVariablesResolver,
  type MantineThemeOverride,
  Modal,
  Select,
} from '@mantine/core'

export const theme: MantineThemeOverride = createTheme({
  primaryColor: 'indigo',
  defaultRadius: 'md',
  respectReducedMotion: true,
  fontFamily: 'var(--font-sans)',
  fontFamilyMonospace: 'var(--font-mono)',
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  lineHeights: { xs: '16px', sm: '20px', md: '20px', lg: '24px', xl: '28px' },
  spacing: { xs: '8px', sm: '12px', md: '16px', lg: '24px', xl: '32px' },
  radius: { xs: '4px', sm: '4px', md: '6px', lg: '10px', xl: '14px' },
  headings: {
    fontFamily: 'var(--font-sans)',
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '20px', lineHeight: '28px' },
      h2: { fontSize: '20px', lineHeight: '28px' },
      h3: { fontSize: '16px', lineHeight: '24px' },
      h4: { fontSize: '14px', lineHeight: '20px' },
    },
  },
  components: {
    Alert: Alert.extend({ styles: { title: { color: 'var(--mantine-color-text)' } } }),
    // The header of a window is not the banner landmark of the page.
    Modal: Modal.extend({ defaultProps: { attributes: { header: { role: 'presentation' } } } }),
    // Enter chooses the first option that is left. While the list is open, Enter never submits the form of the field.
    Select: Select.extend({
      defaultProps: {
        selectFirstOptionOnChange: true,
        onKeyDown: (event) => {
          if (event.key === 'Enter' && event.currentTarget.getAttribute('aria-expanded') === 'true')
            event.preventDefault()
        },
      },
    }),
    Badge: Badge.extend({ defaultProps: { tt: 'none', fw: 500, miw: 'max-content', variant: 'light' } }),
  },
})

/** Maps each color of the component library to a role. */
const ROLES = {
  indigo: {
    fill: '--accent',
    hover: '--accent-hover',
    text: '--accent-text',
    soft: '--accent-soft',
    line: '--accent-border',
  },
  red: { fill: '--danger-fill', hover: '--danger', text: '--danger', soft: '--danger-bg', line: '--danger-border' },
  orange: { fill: '--warning', hover: '--warning', text: '--warning', soft: '--warning-bg', line: '--warning-border' },
  yellow: { fill: '--warning', hover: '--warning', text: '--warning', soft: '--warning-bg', line: '--warning-border' },
  teal: {
    fill: '--success-solid',
    hover: '--success',
    text: '--success',
    soft: '--success-bg',
    line: '--success-border',
  },
  blue: { fill: '--info-solid', hover: '--info', text: '--info', soft: '--info-bg', line: '--info-border' },
  gray: {
    fill: '--neutral-solid',
    hover: '--text-3',
    text: '--text-2',
    soft: '--neutral-bg',
    line: '--neutral-border',
  },
} as const

function variablesOf(name: string, role: (typeof ROLES)[keyof typeof ROLES]): [string, string][] {
  const color = `--mantine-color-${name}`
  return [
    [`${color}-filled`, `var(${role.fill})`],
    [`${color}-filled-hover`, `var(${role.hover})`],
    [`${color}-text`, `var(${role.text})`],
    [`${color}-light`, `var(${role.soft})`],
    [`${color}-light-hover`, `var(${role.soft})`],
    [`${color}-light-color`, `var(${role.text})`],
    [`${color}-outline`, `var(${role.line})`],
    [`${color}-outline-hover`, `var(${role.soft})`],
  ]
}

const variables: Record<string, string> = {
  '--mantine-color-body': 'var(--bg)',
  '--mantine-color-text': 'var(--text)',
  '--mantine-color-dimmed': 'var(--text-2)',
  '--mantine-color-placeholder': 'var(--text-3)',
  '--mantine-color-anchor': 'var(--accent-text)',
  '--mantine-color-error': 'var(--danger)',
  '--mantine-color-default': 'var(--surface)',
  '--mantine-color-default-hover': 'var(--sunken)',
  '--mantine-color-default-color': 'var(--text)',
  '--mantine-color-default-border': 'var(--border)',
  '--mantine-shadow-sm': 'none',
  '--mantine-shadow-md': 'var(--shadow-float)',
  '--mantine-shadow-xl': 'var(--shadow-float)',
  ...Object.fromEntries(Object.entries(ROLES).flatMap(([name, role]) => variablesOf(name, role))),
}

/** The tokens differ between the themes, so the variables of the component library are the same in both. */
export const resolver: CSSVariablesResolver = () => ({ variables: {}, light: variables, dark: variables })
