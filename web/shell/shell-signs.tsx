import type { ReactNode } from 'react'
import { useConnection } from '../data/feed.ts'
import { IconButton } from '../parts/button.tsx'
import type { IconName } from '../parts/icon.tsx'
import { say } from '../parts/toast.tsx'
import { nextTheme, type Theme, useTheme } from '../window/theme.ts'

const LIVE = { live: 'Live', connecting: 'Connecting', resting: 'Resting', lost: 'Reconnecting' } as const

/** Whether the page hears of everything as it happens. */
export function LiveSign(): ReactNode {
  const { kind } = useConnection()
  return <span className={`live ${kind === 'live' ? '' : 'live-off'}`}>{LIVE[kind]}</span>
}

const THEMES: Readonly<Record<Theme, readonly [IconName, string]>> = {
  auto: ['half', 'as the system'],
  light: ['sun', 'light'],
  dark: ['moon', 'dark'],
}

export function ThemeButton(): ReactNode {
  const [icon, words] = THEMES[useTheme()]
  return <IconButton icon={icon} label={`Theme: ${words}`} onClick={() => say(`Theme: ${THEMES[nextTheme()][1]}`)} />
}
