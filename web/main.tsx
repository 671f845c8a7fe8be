import './styles/tokens.css'
import './styles/base.css'
import './styles/parts.css'
import './styles/shell.css'
import './styles/dialog.css'
import './styles/inbox.css'
import './styles/small.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { listenToKeys } from './window/keys.ts'
import { listenToPresence } from './window/present.ts'
import { applyTheme } from './window/theme.ts'

applyTheme()
listenToKeys()
listenToPresence()
const place = document.getElementById('root')
if (place !== null) {
  createRoot(place).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
}
