// Opens the inspector in the browser of the person at this terminal.

import { spawn } from 'node:child_process'

/** Opens a file or an address. False where this machine has no browser to show it in. */
export function openBrowser(what: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const [program, ...args] = openerOf(env)
  if (program === undefined) return Promise.resolve(false)
  return new Promise((resolve) => {
    const child = spawn(program, [...args, what], { detached: true, stdio: 'ignore' })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
}

/** `$BROWSER`, or what the system opens addresses with. */
function openerOf({ BROWSER = '', DISPLAY, WAYLAND_DISPLAY }: NodeJS.ProcessEnv): readonly string[] {
  if (BROWSER !== '') return [BROWSER]
  if (process.platform === 'darwin') return ['open']
  if (process.platform === 'win32') return ['explorer.exe']
  return DISPLAY === undefined && WAYLAND_DISPLAY === undefined ? [] : ['xdg-open']
}
