// Every page works without this file. It adds a button that copies a new key, and shows the progress
// of runs without loading the whole page again.
'use strict';

for (const button of document.querySelectorAll('[data-copy]')) {
  const field = document.getElementById(button.dataset.copy);
  button.hidden = !navigator.clipboard;
  button.addEventListener('click', async () => {
    field.select();
    await navigator.clipboard.writeText(field.value);
    button.textContent = 'Copied';
  });
}

const seconds = Number(document.body.dataset.refresh);
if (seconds > 0) {
  const refresh = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: 'text/html' } });
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const live = page.getElementById('live');
      const here = document.getElementById('live');
      if (!live || !here) {
        location.reload();
        return;
      }
      here.replaceWith(document.importNode(live, true));
      if (!page.body.dataset.refresh) {
        return;
      }
    } catch {
      // The server is busy or does not answer. The next try may succeed.
    }
    setTimeout(refresh, seconds * 1000);
  };
  setTimeout(refresh, seconds * 1000);
}
