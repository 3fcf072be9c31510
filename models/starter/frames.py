"""What people say to the starter and the fixed sentences around what it copies back, in three languages.

{t} is a topic, {p} a path or title, {c} new text, {f} a folder. The answers are fixed on purpose: the model is too
small to phrase anything, so it quotes and says where the quotation is from.
"""

# Questions of any kind: the whole question becomes the search query.
ASK = {
 'en': """What do my notes say about {t}?|What do I know about {t}?|Do I have anything on {t}?|Tell me about {t}.|What did I write about {t}?
Where did I mention {t}?|{t}?|{t}|What is {t}?|Anything about {t} in my notes?|Who is {t}?|When was {t}?|How do I {t}?|When did we {t}?
How much {t} do I need for {u}?|How many {t} did we {u}?|Where is the {t}?|Where did I put the {t}?|What was the {t} of {u}?|Why did {t} {u}?|Which {t} did {u} like?
Who gave me the {t}?|At what {t} does the {u} start?|How long does the {t} take?|What colour is the {t}?|Did I ever {t} with {u}?|Is there a {t} for {u}?
What do I need for {t}?|I forgot the {t} of {u}|I need the {t}.|When is the next {t}?|What happened at {t}?|Can you remind me of the {t}?|Remind me when {t} is
What's the {t} for {u}?|How hot should the {t} be?|How often do I {t} the {u}?|Whose {t} is {u}?|Does {t} need {u}?|Have I already {t}?|Was {t} in {u}?|Could {t} be {u}?
In which {t} was the {u}?|On what day did {t} {u}?|What are the {t} of {u}?|What does {t} mean?|Please tell me the {t} of the {u}.|Hi, what is the {t}?|And the {t}?
How did the {t} go?|What went wrong with {t}?|Are there {t} at {u}?|Who should I call about {t}?|What time does {t} {u}?|How far is {t} from {u}?|What did {t} say about {u}?|Do my notes say anything about {t}?|Did I write anything about {t}?|Show me what I have on {t}
Do my notes mention {t}?|Is there anything on {t} in my notes?|What have I noted about {t}?|How much was the {t} in {u}|what did the {t} say about {u}|which {t} is the {u}?|How many {t} can the {u} {t}?""",
 'fr': """Que disent mes notes sur {t} ?|Qu'est-ce que je sais sur {t} ?|Est-ce que j'ai quelque chose sur {t} ?|Parle-moi de {t}.|Qu'ai-je écrit sur {t} ?
Où ai-je parlé de {t} ?|{t} ?|{t}|Qu'est-ce que {t} ?|Qui est {t} ?|Quand a eu lieu {t} ?|Comment faire {t} ?|Quand est-ce qu'on a {t} ?
Combien de {t} faut-il pour {u} ?|Combien de {t} avons-nous {u} ?|Où est le {t} ?|Où ai-je mis la {t} ?|Quel était le {t} de {u} ?|Pourquoi {t} a {u} ?|Quelle {t} a aimée {u} ?
Qui m'a donné {t} ?|À quelle {t} commence {u} ?|Combien de temps dure {t} ?|De quelle couleur est la {t} ?|Y a-t-il un {t} pour {u} ?|De quoi ai-je besoin pour {t} ?
J'ai oublié le {t} de {u}|Il me faut le {t}.|C'est quand le prochain {t} ?|Que s'est-il passé à {t} ?|Peux-tu me rappeler le {t} ?|Rappelle-moi la date de {t}
C'est quoi le {t} de {u} ?|Combien coûte {t} ?|Combien a coûté la {t} ?|Est-ce que {t} a besoin de {u} ?|Ai-je déjà {t} ?|Dans quelle {t} était {u} ?|Quel jour {t} {u} ?
Quels sont les {t} de {u} ?|Que veut dire {t} ?|Dis-moi le {t} de {u}, s'il te plaît.|Bonjour, quel est le {t} ?|Et le {t} ?|Comment s'est passé {t} ?|Qui appeler pour {t} ?
À qui est {t} ?|Quel est le numéro de {t} ?|Quelles {t} sont {u} ?|Depuis quand {t} ?|Qui a {t} la {u} ?|Qu'a dit {t} à propos de {u} ?|Faut-il {t} avant {u} ?|Qu'est-ce que j'ai noté sur {t} ?|Mes notes parlent-elles de {t} ?|Y a-t-il quelque chose sur {t} dans mes notes ?
Quel est le secret de {t} ?|Qui s'occupe de {t} à {u} ?|Comment s'appelle le {t} de {u} ?|Où se trouve la {t} ?|À combien passe la {t} du {u} ?|{t} est-elle {u} ?|Quelle {t} pour les {u} ?|Pourquoi la {t} a-t-elle {u} ?""",
 'zh': """我的笔记里关于{t}是怎么说的？|我对{t}知道什么？|有没有关于{t}的内容？|告诉我{t}的情况。|我写过什么关于{t}的？|我在哪里提到过{t}？|{t}？|{t}|{t}是什么？
{t}是谁？|{t}是什么时候？|怎么{t}？|我们什么时候{t}的？|{u}需要多少{t}？|{t}有几个{u}？|{t}在哪里？|我把{t}放在哪儿了？|{u}的{t}是多少？|为什么{t}{u}？|{u}喜欢哪种{t}？
谁给了我{t}？|{t}几点{u}？|{t}要多长时间？|{t}是什么颜色的？|有没有{u}用的{t}？|{t}需要准备什么？|我忘了{u}的{t}|我需要{t}。|下次{t}是什么时候？|{t}那天发生了什么？
提醒我{t}是哪天|请问{t}多少钱？|{t}花了多少钱？|{t}需要{u}吗？|我已经{t}了吗？|{t}在哪个{u}？|{t}的意思是什么？|请告诉我{u}的{t}。|你好，{t}是什么？|那{t}呢？
{t}怎么样？|{t}要找谁？|{u}的{t}号码是多少？|{t}离{u}有多远？|{t}说了{u}什么？|{t}多久{u}一次？|{u}前要不要{t}？|我跟{u}什么时候{t}？|{t}一共多少？|{t}叫什么名字？|笔记里有没有提到{t}？|我写过{t}吗？|笔记里有{t}吗？|{u}的{t}什么时候放？|{t}以前是做什么{u}的？|{t}的时候{u}是多少？|{t}从{u}带了多少？|{t}每{u}多少钱？|{t}显示{u}是什么意思？|{t}要用多少{u}？"""}

# Requests that name what to search for: only that part becomes the query.
SEARCH = {
 'en': "Search my notes for {t}.|Search for {t}|Search {t}|Find {t}|Find notes about {t}|Look up {t}|Look for {t}|search for {t}|find {t}|Find my notes on {t}.|Search the vault for {t}.|Please search for {t}.|Which notes mention {t}?|Which notes are about {t}?|Which notes talk about {t}?|Which of my notes mention {t}?|What notes do I have about {t}?|Do I have notes on {t}?|Are there notes about {t}?|List the notes about {t}.|List all notes that mention {t}|Show me the notes about {t}|Show notes on {t}|Which note mentions {t}?|Which note is about {t}?|In which note is {t}?|Which notes contain {t}?|Give me the notes that mention {t}.|notes about {t}|Find every note with {t}",
 'fr': "Cherche {t}|Cherche {t} dans mes notes.|Recherche {t}|Trouve {t}|Trouve les notes sur {t}.|Cherche les notes sur {t}|Rechercher {t}|Cherche dans mes notes : {t}|Peux-tu chercher {t} ?|Quelles notes parlent de {t} ?|Quelles notes mentionnent {t} ?|Lesquelles de mes notes parlent de {t} ?|Quelles notes ai-je sur {t} ?|Ai-je des notes sur {t} ?|Y a-t-il des notes sur {t} ?|Liste les notes qui parlent de {t}.|Montre-moi les notes sur {t}|Affiche les notes à propos de {t}|Quelle note parle de {t} ?|Dans quelle note se trouve {t} ?|Quelles notes contiennent {t} ?|notes sur {t}|Dans quelles notes ai-je écrit {t} ?",
 'zh': "搜索{t}|搜索：{t}|查找{t}|查一下{t}|找一下{t}|在笔记里搜索{t}。|请搜索{t}|帮我找{t}|帮我查一下{t}。|搜索关于{t}的笔记|哪些笔记提到{t}？|哪些笔记提到了{t}？|哪些笔记是关于{t}的？|哪些笔记里有{t}？|我有哪些关于{t}的笔记？|有没有关于{t}的笔记？|列出关于{t}的笔记。|列出提到{t}的笔记|给我看关于{t}的笔记|哪篇笔记提到{t}？|哪篇笔记里有{t}？|关于{t}的笔记有哪些？|显示提到{t}的笔记|关于{t}的笔记"}

# Requests for one note by path or title.
READ = {
 'en': 'Read {p}|Open {p}.|Open {p}|Show me {p}|What is in {p}?|Read the note {p}.|Summarize {p}|Summarise the note {p}.|What does {p} say?|Show the note {p}|cat {p}|Can you open {p}?|open the note {p}|Read the note "{p}".|Open the note "{p}"|Summarise "{p}".|Please read {p}.|Give me a summary of {p}|Open note {p}|Show me the note “{p}”.|What is written in {p}?|Read {p} to me|Show me my {p}|Show me the {p}|Open my {p}|Show me the note {p}|What is in the note {p}?|What does the note {p} say?|open {p}|read {p}|show me {p}|Read my note {p}|Open the file {p}',
 'fr': 'Lis {p}|Ouvre {p}.|Ouvre {p}|Montre-moi {p}|Que contient {p} ?|Lis la note {p}.|Résume {p}|Résume la note {p}.|Que dit {p} ?|Affiche la note {p}|Peux-tu ouvrir {p} ?|Ouvre la note « {p} ».|Lis la note « {p} »|Résume la note "{p}".|Fais un résumé de {p}|Ouvre la note {p}|Montre la note “{p}”.|Lis-moi {p}|Qu\'y a-t-il dans {p} ?|Lire {p}|Montre-moi ma liste {p}|Montre-moi ma note {p}|Montre-moi mon {p}|Montre-moi mes {p}|Montre-moi la note {p}|Que contient la note {p} ?|Que dit la note {p} ?|ouvre {p}|lis {p}|montre {p}|Ouvre ma note {p}',
 'zh': '打开{p}|读一下{p}|打开笔记{p}。|读{p}|看看{p}|打开《{p}》|读一下《{p}》这篇笔记。|总结{p}|总结一下《{p}》。|{p}里写了什么？|《{p}》里写了什么？|请打开{p}|显示笔记“{p}”。|给我看{p}|把{p}读给我听|请读笔记“{p}”|打开 {p}|总结笔记 {p}|给我看看{p}|打开笔记《{p}》|看看我的{p}|给我看看我的{p}|读笔记《{p}》|打开笔记 {p}|读一下 {p}|笔记{p}里写了什么？'}

LIST = {
 'en': "What notes do I have?|List my notes.|List my notes|Show all notes|list all notes|Which notes are there?|What's in my vault?|Give me a list of my notes|Show me all my notes|list notes|List all my notes.|Which notes do I have?|What files are there?",
 'fr': "Quelles notes ai-je ?|Liste mes notes.|Liste mes notes|Montre toutes les notes|Affiche toutes mes notes|Quelles sont mes notes ?|Qu'y a-t-il dans mon coffre ?|Donne-moi la liste de mes notes|Liste toutes les notes.|Fais la liste de mes notes",
 'zh': "我有哪些笔记？|列出我的笔记。|列出我的笔记|显示所有笔记|列出所有笔记|有哪些笔记？|给我笔记列表|把所有笔记列出来|我的笔记有哪些？|笔记列表"}
LIST_IN = {
 'en': "List the notes in {f}.|List the notes in {f}|What notes are in {f}?|Show the notes in the folder {f}|Which notes are in the folder {f}?|List my notes in {f}|Which notes do I have in {f}?|What notes are in the {f} folder?|List the notes in the {f} folder.|Show me the {f} folder|What's in the {f} folder?|Which notes are in {f}?",
 'fr': "Liste les notes de {f}.|Liste les notes dans {f}|Quelles notes y a-t-il dans {f} ?|Montre les notes du dossier {f}|Quelles sont les notes du dossier {f} ?|Liste les notes du dossier {f}.|Quelles notes y a-t-il dans le dossier {f} ?|Liste les notes dans le dossier {f}|Que contient le dossier {f} ?|Affiche le dossier {f}",
 'zh': "列出{f}里的笔记。|列出{f}文件夹里的笔记|{f}里有哪些笔记？|显示{f}文件夹的笔记|文件夹{f}里有哪些笔记？|列出 {f} 中的笔记|{f}文件夹里有哪些笔记？|{f}文件夹里有什么？|看看{f}文件夹|{f} 文件夹里有哪些笔记？|{f}目录下有哪些笔记？"}
CREATE = {
 'en': 'Create {p} with the text {c}|Create a note {p} with the text "{c}"|Create a note {p}: {c}|Create the note {p} with the text: {c}|Make a note {p}: {c}|Write {c} to {p}|Save a note called {p} saying {c}|New note {p}: {c}|Create a note named {p} that says "{c}"|Write a note {p} with the content {c}|Create {p} with "{c}"|Create a note {p} with the text: {c}|Create a note {p} with the text {c}|Create a new note {p}: {c}|Create {p} with the text: {c}|Create the note {p} and write: {c}|Create a note called {p} with the content: {c}',
 'fr': 'Crée {p} avec le texte {c}|Crée la note {p} avec le texte « {c} »|Crée une note {p} : {c}|Crée la note {p} avec le texte : {c}|Nouvelle note {p} : {c}|Écris {c} dans une nouvelle note {p}|Crée une note {p} avec le texte "{c}"|Crée une note {p} qui dit « {c} »|Enregistre une note {p} avec le contenu {c}|Crée une note {p} avec le texte : {c}|Crée une note {p} avec le texte {c}|Crée une nouvelle note {p} : {c}|Crée {p} avec le texte : {c}|Crée une note appelée {p} avec le contenu : {c}|Écris une note {p} : {c}',
 'zh': '新建笔记{p}，内容是：{c}|创建笔记{p}，内容：{c}|创建{p}，写上“{c}”|新建{p}：{c}|写一篇笔记{p}，内容是“{c}”|创建笔记 {p}，内容为：{c}|新建一篇笔记{p}，写：{c}|新建笔记 {p}，内容是：{c}|新建 {p}，内容：{c}|创建一个笔记 {p}，内容是“{c}”|写一个新笔记 {p}：{c}|新建一篇笔记 {p}，内容为{c}'}
APPEND = {
 'en': 'Add {c} to {p}|Add "{c}" to {p}.|Add "{c}" to the note {p}|Append {c} to {p}|Append "{c}" to {p}|Add to {p}: {c}|Note in {p}: {c}|Add the line "{c}" to {p}.|Append to {p}: {c}|Put {c} in {p}|Add the text "{c}" at the end of {p}|Add to the note {p}: {c}|Append to the note {p}: {c}|Add this to {p}: {c}|Add a line to {p}: {c}|Write in {p}: {c}|add to my note {p}: {c}',
 'fr': 'Ajoute {c} à {p}|Ajoute « {c} » à {p}.|Ajoute « {c} » à la note {p}|Ajoute à {p} : {c}|Note dans {p} : {c}|Ajoute "{c}" à {p}|Ajoute la ligne « {c} » à {p}.|Ajoute {c} dans {p}|Ajoute ceci à {p} : {c}|Ajoute le texte « {c} » à la fin de {p}|Ajoute à la note {p} : {c}|Ajoute une ligne à {p} : {c}|Écris dans {p} : {c}|Ajoute dans la note {p} : {c}|Ajoute à ma note {p} : {c}',
 'zh': '在{p}里加上“{c}”|在{p}里写上{c}|在{p}末尾添加：{c}|把“{c}”加到{p}|往{p}里添加{c}|在笔记{p}里加一行“{c}”|给{p}添加：{c}|在{p}中追加：{c}|把{c}写到{p}里|在 {p} 里加一句：{c}|在{p}里加一句：{c}|在 {p} 里写上：{c}|在笔记 {p} 里添加：{c}|往 {p} 里加一行：{c}|在 {p} 末尾加上“{c}”|给 {p} 加一条：{c}|把“{c}”加到 {p} 里'}
HELLO = {
 'en': "Hello|Hi!|Hey|Good morning|Who are you?|What can you do?|help|Help|How are you?|What are you?|Are you an AI?|Good evening|Hello there|What model are you?|hi|hello!|Hi there|What's your name?|How can you help me?",
 'fr': "Bonjour|Salut !|Bonsoir|Qui es-tu ?|Que peux-tu faire ?|Aide|aide|Comment ça va ?|Qu'est-ce que tu es ?|Es-tu une IA ?|Coucou|Quel modèle es-tu ?|Comment t'appelles-tu ?|Que sais-tu faire ?|Bonjour !",
 'zh': "你好|您好！|早上好|你是谁？|你能做什么？|帮助|你好吗？|你是什么？|你是AI吗？|晚上好|你是什么模型？|你会做什么？|你叫什么名字？|嗨|怎么用？|你好！"}
OUT = {
 'en': "Write a poem about {t}.|Write me a poem about {t}|Translate {t} to French.|Translate {t} into Chinese|Write code for {t}.|Tell me a joke.|Tell me a joke about {t}|Brainstorm ideas for {t}|Write an essay on {t}|Draft an email about {t}|Write a story about {t}|Make up a song about {t}|Write an essay about {t}.|Translate this: {t}",
 'fr': "Écris un poème sur {t}.|Écris-moi un poème sur {t}|Traduis {t} en anglais.|Traduis {t} en chinois|Écris du code pour {t}.|Raconte-moi une blague.|Raconte une blague sur {t}|Rédige un courriel sur {t}|Écris une histoire sur {t}|Invente une chanson sur {t}|Rédige une dissertation sur {t}.|Traduis ceci : {t}",
 'zh': "写一首关于{t}的诗。|给我写一首关于{t}的诗|把{t}翻译成英文。|翻译{t}|写一段{t}的代码。|讲个笑话。|讲一个关于{t}的笑话|写一封关于{t}的邮件|编一个关于{t}的故事|写一篇关于{t}的文章|写一首{t}的歌"}

# Two notes at once, and questions that only mean something after the last answer.
BOTH = {
 'en': 'Read {p} and {r}|Open {p} and {r}|Show me {p} and {r}.|Read the notes {p} and {r}|Compare {p} with {r}|What do {p} and {r} say?|First open {p}, then {r}|Summarise {p} and {r}',
 'fr': 'Lis {p} et {r}|Ouvre {p} et {r}|Montre-moi {p} et {r}.|Lis les notes {p} et {r}|Compare {p} et {r}|Que disent {p} et {r} ?|Ouvre d\'abord {p}, puis {r}|Résume {p} et {r}',
 'zh': '打开{p}和{r}|读一下 {p} 和 {r}|看看{p}和{r}|比较 {p} 和 {r}|{p}和{r}里写了什么？|先打开 {p}，再打开 {r}|总结 {p} 和 {r}'}
OTHER = {  # the one found after the last that was opened
 'en': "And the other one?|What about the other note?|And the next one?|Show me the other one|Read the next one.|the other one|What does the other note say?|and the other?|next|Next one please|What is in the other one?|Now the other one.|Let me see the other one|another one?|Is there another one?|Anything else?|And the other note?|Go on with the next one|Show me the next|And another?|ok, and the other one?|What does the other one say?|Open the other one|Open the next one.|the next one please|Any more?|More?|Are there more?|Are there any more notes?|Is there more on that?|Do you have another one?|Was there another?|Any other note?|any others?|Is that the only one?",
 'fr': "Et l'autre ?|Et la suivante ?|Montre-moi l'autre|Lis la suivante.|Et l'autre note ?|l'autre|Que dit l'autre note ?|la suivante|Et pour l'autre ?|Ouvre l'autre|Ouvre la suivante.|Une autre ?|Y en a-t-il une autre ?|Autre chose ?|Qu'y a-t-il dans l'autre ?|Maintenant l'autre.|Passe à la suivante|Et celle d'après ?|et l'autre|Que contient l'autre ?|Montre la suivante|Lis l'autre note.|Encore une ?|D'autres ?|Y en a-t-il plus ?|Il y en a d'autres ?|Y a-t-il d'autres notes ?|As-tu une autre note ?|Est-ce la seule ?|une autre note ?|Et encore ?",
 'zh': "那另一个呢？|下一个呢？|给我看另一个|读下一个。|另一篇呢？|那一篇呢？|另一篇笔记里写了什么？|下一篇|另一个|还有别的吗？|还有吗？|打开另一篇|打开下一篇。|看看另一篇|另一个说了什么？|那另一篇呢？|下一篇呢？|再看下一篇|换另一篇|读另一篇笔记|还有其他的吗？|还有更多吗？|别的呢？|还有没有别的？|其他的呢？|只有这一篇吗？|还有别的笔记吗？|其它笔记呢？|更多"}
NEXT = {  # the one after it in a list
 'en': "And the next one?|The next one|Next|Open the next one.|And the one after that?|next note please|Continue|the following one",
 'fr': "Et la suivante ?|La suivante|Ouvre la suivante.|Et celle d'après ?|la note suivante|Continue|Passe à la suivante",
 'zh': "下一个呢？|下一篇|打开下一篇。|再下一篇呢？|看下一篇|继续|再后面那篇呢？"}
SECOND = {
 'en': "What about the second?|Open the second one|And the second note?|And the second one?|Show me the second.|Read the second one|And number two?|the second one please|What does the second one say?|Open the second note|Open number 2|second",
 'fr': "Et la deuxième ?|Ouvre la deuxième|Lis la deuxième.|Et la seconde ?|Montre-moi la deuxième|la deuxième|Que dit la deuxième note ?|Ouvre la deuxième note|Ouvre le numéro 2|Et la deuxième note ?",
 'zh': "第二个呢？|打开第二个|第二篇呢？|读第二篇|看看第二篇。|第二篇笔记里写了什么？|打开第二篇|第二个|那第二篇呢？|打开第2篇"}
THIRD = {
 'en': "And the third one?|Open the third|the third one|What about the third note?|Show me number three|Read the third one.|And the third?|Open number 3|What does the third one say?",
 'fr': "Et la troisième ?|Ouvre la troisième|la troisième|Que dit la troisième note ?|Montre-moi la troisième|Lis la troisième.|Ouvre le numéro 3|Et la troisième note ?",
 'zh': "第三个呢？|打开第三个|第三篇呢？|看看第三篇|第三篇笔记里写了什么？|读第三篇。|打开第3篇|那第三篇呢？"}
FIRST = {
 'en': "Open the first one|And the first one?|the first one|Back to the first.|Show me the first note|Read the first one|Open number 1",
 'fr': "Ouvre la première|Et la première ?|la première|Reviens à la première.|Montre-moi la première note|Lis la première|Ouvre le numéro 1",
 'zh': "打开第一个|第一个呢？|第一篇|回到第一篇。|看看第一篇笔记|读第一篇|打开第1篇"}
WHOLE = {  # the note that the last answer was about
 'en': "Open it|Open that note|Show me the whole note|Read it to me|Read the whole note|What else does it say?|Show me that note.|open the note|What else is in it?|Open this note.|Read that note|Show me all of it|Summarise it|Give me the whole note.|The whole note, please|the full note|Show it to me in full|Open that one|Read this one to me.|the entire note|Show this note|Let me read it|Show the full text.|Can you open it?|What does it say?|Let me see the whole thing",
 'fr': "Ouvre-la|Ouvre cette note|Montre-moi toute la note|Lis-la|Lis toute la note|Que dit-elle d'autre ?|Montre cette note.|ouvre la note|Qu'y a-t-il d'autre dedans ?|Lis cette note|Résume-la|Montre-moi la note entière.|La note entière|la note complète|Montre-la-moi en entier|Ouvre celle-là|Lis celle-ci.|Affiche-la|Que dit-elle ?|Je veux la lire en entier",
 'zh': "打开它|打开这篇笔记|给我看整篇笔记|读一下这篇|读全文|它还写了什么？|看看这篇笔记。|打开这篇|里面还有什么？|总结一下这篇|给我看全文|整篇笔记|完整的笔记|把它完整显示出来|打开那篇|读这篇。|显示全文|我想看全文|能打开它吗？|它说了什么？|这篇的全部内容"}
THANKS = {
 'en': "Thanks!|Thank you|thanks a lot|Great, thank you!|ok|OK, thanks.|Thanks a lot.|Thank you!|thank you very much|Thank you, that helps.|Perfect|Very good.|Good, that is all|Bye|no, thank you|got it",
 'fr': "Merci !|Merci|merci beaucoup|Parfait, merci !|d'accord|OK, merci.|Merci beaucoup.|Un grand merci|Merci, c'est parfait.|Parfait|Très bien.|Bien, c'est tout|Au revoir|non merci|compris",
 'zh': "谢谢！|谢谢|多谢|很好，谢谢！|好的|好，谢谢。|非常感谢|谢谢你！|谢谢您|完美|很好。|好，就这样|再见|不用了，谢谢|明白了"}
CALL = {  # a tool by its name
 'en': "Call the tool {n}|Call {n}|Use {n}|Use the tool {n}|Run {n}|Run the tool {n}|Please call {n}|Use the {n} tool|call the {n} tool|Try {n}|Can you call {n}?|{n}",
 'fr': "Appelle l'outil {n}|Appelle {n}|Utilise {n}|Utilise l'outil {n}|Lance {n}|Lance l'outil {n}|Essaie {n}|Peux-tu appeler {n} ?",
 'zh': "调用工具{n}|调用{n}|使用{n}|使用工具 {n}|运行 {n}|运行工具{n}|请调用 {n}|用一下{n}"}
CALL_WITH = {
 'en': 'Call {n} with "{m}"|Call the tool {n} with {m}|Use {n} with {m}|Use the tool {n} with the text "{m}"|Run {n} with {m}|Use the {n} tool on {m}|{n}: {m}|Call {n} for {m}',
 'fr': 'Appelle {n} avec « {m} »|Appelle l\'outil {n} avec {m}|Utilise {n} avec {m}|Lance {n} avec "{m}"|{n} : {m}|Utilise l\'outil {n} sur {m}',
 'zh': '用“{m}”调用{n}|调用{n}，内容是{m}|使用{n}：{m}|调用工具 {n}：{m}|运行 {n}，参数“{m}”|{n}：{m}'}
NO_OTHER = {'en': 'I found no other one.', 'fr': "Je n'en ai pas trouvé d'autre.", 'zh': '没有找到别的了。'}
THANKS_A = {'en': 'You are welcome.', 'fr': 'Je vous en prie.', 'zh': '不客气。'}

for _table in (BOTH, CALL, CALL_WITH, NEXT, OTHER, SECOND, THIRD, FIRST, WHOLE, THANKS, ASK, SEARCH, READ, LIST, LIST_IN, CREATE, APPEND, HELLO, OUT):
    for _lang, _s in _table.items(): _table[_lang] = [x for line in _s.split('\n') for x in line.split('|') if x]

# ---- answers
FROM = {'en': 'From {p}:\n\n{q}', 'fr': "D'après {p} :\n\n{q}", 'zh': '来自 {p}：\n\n{q}'}
SAYS = {'en': '{p} says:\n\n{q}', 'fr': '{p} dit :\n\n{q}', 'zh': '{p} 的内容：\n\n{q}'}
NOTHING = {'en': 'I found nothing in your notes for “{q}”.', 'fr': "Je n'ai rien trouvé dans vos notes pour « {q} ».", 'zh': '在你的笔记里没有找到“{q}”。'}
YOURS = {'en': 'Your notes:\n\n{l}', 'fr': 'Vos notes :\n\n{l}', 'zh': '你的笔记：\n\n{l}'}
EMPTY = {'en': 'That note is empty.', 'fr': 'Cette note est vide.', 'zh': '这篇笔记是空的。'}
NONE_LISTED = {'en': 'There are no notes.', 'fr': "Il n'y a pas de notes.", 'zh': '没有笔记。'}
WROTE = {'en': 'I wrote {p}.', 'fr': "J'ai écrit {p}.", 'zh': '已写入 {p}。'}
FAILED = {'en': 'That did not work: {e}', 'fr': "Cela n'a pas marché : {e}", 'zh': '没有成功：{e}'}
TOOL_SAID = {'en': 'The tool answered: {e}', 'fr': "L'outil a répondu : {e}", 'zh': '工具回答：{e}'}
HELLO_A = {
 'en': 'I am the starter model, a very small model that runs on this computer. I can list, search, read and write your notes. For real conversation, choose a larger model in Settings.',
 'fr': 'Je suis le modèle de départ, un très petit modèle qui tourne sur cet ordinateur. Je peux lister, chercher, lire et écrire vos notes. Pour une vraie conversation, choisissez un modèle plus grand dans les réglages.',
 'zh': '我是入门模型，一个在这台电脑上运行的很小的模型。我可以列出、搜索、阅读和写入你的笔记。想要真正的对话，请在设置里选择更大的模型。'}
OUT_A = {
 'en': 'That is beyond the starter model, a very small model. I can look things up in your notes; for anything more, choose a larger one in Settings.',
 'fr': 'Cela dépasse le modèle de départ, un très petit modèle. Je peux chercher dans vos notes ; pour le reste, choisissez un modèle plus grand dans les réglages.',
 'zh': '这超出了入门模型的能力，它是一个很小的模型。我可以在你的笔记里查找；更多的事请在设置里选择更大的模型。'}
NO_TOOLS_A = {
 'en': 'I am the starter model, a very small model. I can only look things up while the notes server is on; for anything more, choose a larger one in Settings.',
 'fr': 'Je suis le modèle de départ, un très petit modèle. Je ne peux chercher que si le serveur de notes est actif ; pour le reste, choisissez un modèle plus grand dans les réglages.',
 'zh': '我是入门模型，一个很小的模型。只有笔记服务器打开时我才能查找；更多的事请在设置里选择更大的模型。'}
