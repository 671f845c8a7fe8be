import { Cell, useCell } from './cell.ts'

/** `auto`: as the system says. */
export type Theme = 'auto' | 'light' | 'dark'

const KEY = 'legate.theme'
const ORDER: readonly Theme[] = ['auto', 'light', 'dark']
const theme = new Cell<Theme>(stored())

function stored(): Theme {
  try {
    const kept = localStorage.getItem(KEY)
    return ORDER.find((one) => one === kept) ?? 'auto'
  } catch {
    return 'auto'
  }
}

export function useTheme(): Theme {
  return useCell(theme)
}

/** Puts the theme on the page: once before the first paint, and whenever it changes. */
export function applyTheme(): void {
  const now = theme.get()
  if (now === 'auto') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = now
}

/** From the system's to light, to dark, and back. */
export function nextTheme(): Theme {
  const next = ORDER[(ORDER.indexOf(theme.get()) + 1) % ORDER.length] ?? 'auto'
  theme.set(next)
  applyTheme()
  try {
    localStorage.setItem(KEY, next)
  } catch {
    // Then it holds for this page.
  }
  return next
}
