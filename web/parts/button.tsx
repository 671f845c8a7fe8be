import type { ButtonHTMLAttributes, ReactNode } from 'react'
import { Icon, type IconName } from './icon.tsx'
import { say } from './toast.tsx'

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** One primary button in a card. */
  readonly look?: 'plain' | 'primary' | 'quiet' | 'danger'
  readonly isSmall?: boolean
  readonly icon?: IconName
  /** The key that does the same. */
  readonly keyCap?: string
}

export function Button({
  look = 'plain',
  isSmall = false,
  icon,
  keyCap,
  className = '',
  children,
  ...rest
}: ButtonProps) {
  const names = ['btn', look === 'plain' ? '' : `btn-${look}`, isSmall ? 'btn-sm' : '', className]
  return (
    <button type="button" {...rest} className={names.filter(Boolean).join(' ')}>
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
      {keyCap === undefined ? null : <Key>{keyCap}</Key>}
    </button>
  )
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly icon: IconName
  /** The action of the button, for screen readers and in a tooltip. */
  readonly label: string
  readonly isSmall?: boolean
}

export function IconButton({ icon, label, isSmall = false, className = '', ...rest }: IconButtonProps): ReactNode {
  return (
    <button
      type="button"
      title={label}
      aria-label={label}
      {...rest}
      className={`ib ${isSmall ? 'ib-sm' : ''} ${className}`}
    >
      <Icon name={icon} />
    </button>
  )
}

/** A key cap. Buttons name their keys in the list of keys too, so readers need not hear it. */
export function Key({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <span className="kbd" aria-hidden="true">
      {children}
    </span>
  )
}

/** Copies a text, and says so. */
export function copy(text: string, said = 'Copied'): void {
  navigator.clipboard.writeText(text).then(
    () => say(said),
    () => say('This browser does not let the page copy.'),
  )
}
