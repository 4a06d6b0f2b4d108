// Makes the one template out of src/: node build.mjs OUTPUT [NODE_MODULES]
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const [output, modules = join(here, 'node_modules')] = process.argv.slice(2);
const { build } = await import(pathToFileURL(resolve(modules, 'esbuild/lib/main.js')));

const common = { bundle: true, minify: true, write: false, charset: 'utf8', nodePaths: [resolve(modules)], absWorkingDir: here,
  legalComments: 'none' };
const text = async (entry, more) => (await build({ ...common, entryPoints: [entry], ...more })).outputFiles[0].text.trim();
const script = await text('src/main.js', { format: 'iife', target: 'es2020' });
const style = await text('src/style.css', {});
// The licences of what is bundled travel with it.
const notice = readFileSync(join(here, 'NOTICE'), 'utf8').trim();
// Only this script may run: text that got into the page by whatever hole does not.
const hash = createHash('sha256').update(script).digest('base64');
const page = readFileSync(join(here, 'src/index.html'), 'utf8')
  .replace('/*STYLE*/', () => style)
  .replace('<!--NOTICE-->', () => `<!--\n${notice}\n-->`)
  .replace('SCRIPT_HASH', () => hash)
  .replace('/*SCRIPT*/', () => script);
writeFileSync(output, page);
