import path from 'node:path'
import { defineConfig, type Plugin, type UserConfig } from 'vite'

const root = path.resolve(import.meta.dirname, '..')

/** The packages that may become part of the page (THIRD-PARTY.md). */
const packages = {
  onlyBundle: [
    'react',
    'react-dom',
    'scheduler',
    '@xyflow/react',
    '@xyflow/system',
    '@dagrejs/dagre',
    '@dagrejs/graphlib',
    'classcat',
    'zustand',
    'use-sync-external-store',
    'd3-color',
    'd3-dispatch',
    'd3-drag',
    'd3-ease',
    'd3-interpolate',
    'd3-selection',
    'd3-timer',
    'd3-transition',
    'd3-zoom',
  ],
}

/**
 * The inspector. The server sends `script-src 'self'` and no `unsafe-inline`: nothing may become part of a page or of a data URL.
 * With `LEGATE_WEB=file` all of it becomes one script, for runs that are exported as a file.
 */
export default defineConfig(process.env['LEGATE_WEB'] === 'file' ? asFile() : asPages())

function common(): UserConfig {
  return {
    root: import.meta.dirname,
    base: '/',
    publicDir: false,
    logLevel: 'warn',
    // React needs no plugin: nothing is refreshed in place.
    oxc: { jsx: { runtime: 'automatic' } },
    plugins: [onlyListed()],
    resolve: { alias: { 'legate/client': path.join(root, 'src/server/client/index.ts') } },
    define: { 'process.env.NODE_ENV': '"production"' },
  }
}

/** Fails where a package comes in that nobody has looked at. */
function onlyListed(): Plugin {
  return {
    name: 'only-listed',
    generateBundle: (_, files) => {
      const ids = Object.values(files).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
      const found = new Set(ids.flatMap((id) => packageOf(id) ?? []))
      const unknown = [...found].filter((name) => !packages.onlyBundle.includes(name))
      if (unknown.length > 0) throw new Error(`Not in the list of web/vite.config.ts: ${unknown.join(', ')}`)
    },
  }
}

function packageOf(file: string): string | undefined {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]
}

function asPages(): UserConfig {
  return {
    ...common(),
    build: {
      outDir: path.join(root, 'dist/web'),
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 2_000,
    },
    worker: { format: 'es' },
  }
}

function asFile(): UserConfig {
  return {
    ...common(),
    define: { ...common().define, 'import.meta.env.VITE_FILE': '"1"' },
    build: {
      outDir: path.join(root, 'dist/web-file'),
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      modulePreload: false,
      reportCompressedSize: false,
      chunkSizeWarningLimit: 2_000,
      rolldownOptions: {
        input: path.join(import.meta.dirname, 'main.tsx'),
        output: { codeSplitting: false, entryFileNames: 'page.js', assetFileNames: 'page[extname]' },
      },
    },
    worker: { format: 'es' },
  }
}
